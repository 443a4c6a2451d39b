// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{LookupTable, SubqueryJoin}

/**
 * Puts the joins that subqueries gave in place, with the first of Spark's operator optimizations.
 * {{{
 *   SubqueryJoin LeftSingle   =>   Join LeftSingle
 * }}}
 */
object ShowSubqueryJoins extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUp {
      case join: SubqueryJoin => join.toJoin
      // in a query that does not stream all rows come at once
      case LookupTable(table) => table
    }
}
