// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.AttributeMap
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.planmerging.PlanMerger

/** Merges plans by Spark's own [[PlanMerger]]. */
object MergePlans {

  /**
   * A plan that gives what both give, and the places of the second's columns in it; none if there is no
   * such plan. Filters are left where they are.
   */
  def apply(
      first: LogicalPlan,
      second: LogicalPlan): Option[(LogicalPlan, AttributeMap[Int])] = {
    val merger = new PlanMerger(
      false, false, false, false)
    merger.merge(first, subqueryPlan = false)
    val result = merger.merge(second, subqueryPlan = false)
    if (result.mergedPlanIndex > 0) None
    else Some((result.mergedPlan.plan, result.outputMap))
  }
}
