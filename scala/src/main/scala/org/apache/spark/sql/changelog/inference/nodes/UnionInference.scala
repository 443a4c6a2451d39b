// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Union}

import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * `UNION ALL`: the changes of all inputs.
 *
 * Rows of two inputs may agree on any columns, so that a union has no key and nobody can do
 * without its before images. All inputs that update are asked for the same.
 */
object UnionInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[Union]

  override def forwards: Boolean = true

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = inputs.map(_.kinds).reduce(_ union _)

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${DescribeNode.node(node.plan)} has no key")

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(node.children.map(_ => demand))
}
