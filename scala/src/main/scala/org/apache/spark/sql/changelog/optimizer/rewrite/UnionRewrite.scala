// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Union}

import org.apache.spark.sql.changelog.inference.AnnotatedPlan

/**
 * Gives all inputs of a union the same columns; rows of an insert-only input beside a changing
 * one are inserts.
 */
private[optimizer] object UnionRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan.isInstanceOf[Union]

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val aligned = node.plan.children.zip(inputs).map { case (original, input) =>
      NodeRewrite.select(input, original.output, withKind = !node.mode.isInsertOnly)
    }
    node.plan.withNewChildren(aligned)
  }
}
