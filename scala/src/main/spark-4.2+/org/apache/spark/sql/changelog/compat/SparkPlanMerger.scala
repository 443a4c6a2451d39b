// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Makes one plan of two by what Spark merges plans by, see [[PlanMergers]]. */
object SparkPlanMerger {

  /** A plan that gives what both do; none if there is no such plan. */
  def apply(first: LogicalPlan, second: LogicalPlan): Option[MergedPlans] = {
    val merger = PlanMergers()
    merger.merge(first, subqueryPlan = false)
    val result = merger.merge(second, subqueryPlan = false)
    Option.when(result.mergedPlanIndex == 0)(
      MergedPlans(result.mergedPlan.plan, result.outputMap))
  }
}
