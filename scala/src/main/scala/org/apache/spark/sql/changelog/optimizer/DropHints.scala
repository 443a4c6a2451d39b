// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.PlanExpression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{RowTtl, Skew, ToChangelog}

/**
 * Takes `ROW_TTL` and `SKEW` hints out of what is no stream of changes: there they say
 * nothing, as in a session without this extension. Runs before Spark optimizes.
 */
object DropHints extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (plan.collectWithSubqueries { case hint @ (_: RowTtl | _: Skew) =>
        hint
      }.isEmpty) plan
    else drop(plan)

  private def drop(plan: LogicalPlan): LogicalPlan = plan match {
    case root: ToChangelog if root.streaming => root
    case hint @ (_: RowTtl | _: Skew) => drop(hint.children.head)
    case other =>
      other.mapChildren(drop).transformExpressions { case subquery: PlanExpression[_] =>
        subquery.plan match {
          case query: LogicalPlan =>
            subquery.asInstanceOf[PlanExpression[LogicalPlan]].withNewPlan(drop(query))
          case _ => subquery
        }
      }
  }
}
