// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.{
  GlobalLimit,
  LocalLimit,
  LogicalPlan,
  Offset,
  Project
}
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * Takes a limit back to the rows it was written for, from above columns that hold subqueries.
 * {{{
 *   Limit 2                                 Project [k, scalar-subquery]
 *   +- Project [k, scalar-subquery]    =>   +- Limit 2
 *      +- Sort [v]                             +- Sort [v]
 * }}}
 * Spark's optimizer moves columns below limits. Where they become joins, the order is lost by which the
 * limit takes rows, and all rows are joined.
 */
private[optimizer] object LimitBelowSubqueries extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case limit @ (_: LocalLimit | _: GlobalLimit | _: Offset) =>
      limit.children.head match {
        case project: Project if project.projectList.exists(SubqueryExpression.hasSubquery) =>
          project.withNewChildren(Seq(limit.withNewChildren(project.children)))
        case _ => limit
      }
  }
}
