// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{
  LeafNode,
  LocalRelation,
  LogicalPlan,
  Statistics
}

/**
 * A source that has no news in this batch.
 *
 * Spark has a relation without rows in its place, and its optimizer would cut what reads that alone:
 * a union would lose an input, and its columns their ids. What it knows nothing of it leaves alone,
 * so that a query has the same plan in every batch.
 */
case class IdleSource(override val output: Seq[Attribute]) extends LeafNode {

  override def isStreaming: Boolean = true

  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

object IdleSource {

  /** A plan of Spark's with its idle sources marked as such. */
  def mark(plan: LogicalPlan): LogicalPlan = plan.transform {
    case relation: LocalRelation if relation.isStreaming && relation.data.isEmpty =>
      IdleSource(relation.output)
  }
}
