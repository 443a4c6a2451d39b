// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap}
import org.apache.spark.sql.catalyst.optimizer.MergeScalarSubqueries
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * Makes one plan of two by what Spark merges scalar subqueries by, which leaves filters where they are.
 *
 * This version has it within a rule that keeps it to itself, and only later ones have it by itself.
 */
object SparkPlanMerger {
  private lazy val merging = {
    val merging = MergeScalarSubqueries.getClass.getDeclaredMethod(
      "tryMergePlans",
      classOf[LogicalPlan],
      classOf[LogicalPlan])
    merging.setAccessible(true)
    merging
  }

  /** A plan that gives what both do; none if there is no such plan. */
  def apply(first: LogicalPlan, second: LogicalPlan): Option[MergedPlans] =
    merging
      .invoke(MergeScalarSubqueries, second, first)
      .asInstanceOf[Option[(LogicalPlan, AttributeMap[Attribute])]]
      .map { case (merged, columns) =>
        val places = second.output.map { column =>
          column -> merged.output.indexWhere(_.exprId == columns(column).exprId)
        }
        MergedPlans(merged, AttributeMap(places))
      }
}
