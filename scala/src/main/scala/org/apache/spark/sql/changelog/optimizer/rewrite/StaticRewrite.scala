// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.inference.nodes.StaticInference

/**
 * Leaves alone what never changes: Spark computes it as in a batch query, in the first batch only if
 * its rows stand among changing ones.
 */
private[optimizer] object StaticRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = StaticInference.appliesTo(node.plan)

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = node.plan
}
