// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{LiftedSource, LiftedSources, SkipRows, ToChangelog}

/**
 * Puts everything back in place that Spark was not to see before a batch is optimized: the sources
 * of subqueries, and `OFFSET`.
 *
 * {{{
 *   Filter id IN (listquery)            Filter id IN (listquery)
 *   :  +- LiftedSource 0                :  +- FromChangelog u
 *   +- LiftedSources              =>    +- FromChangelog t
 *      :- FromChangelog t
 *      +- FromChangelog u
 * }}}
 *
 * From here on the query is an ordinary one, in which Spark's rules run in Spark's order.
 */
object LowerSources extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[ToChangelog])) plan
    else {
      val lowered = plan.transformUpWithSubqueries {
        case SkipRows(count, child) => Offset(count, child)
        case node if node.children.headOption.exists(_.isInstanceOf[LiftedSources]) =>
          val lifted = node.children.head.asInstanceOf[LiftedSources]
          putBack(lifted, node.withNewChildren(lifted.query +: node.children.tail))
      }
      lowered.transformAllExpressionsWithSubqueries {
        case subquery: SubqueryExpression if subquery.isCorrelated =>
          subquery.withNewPlan(limitsOnSorts(subquery.plan))
      }
    }

  private def putBack(lifted: LiftedSources, plan: LogicalPlan): LogicalPlan =
    plan.transformExpressions { case subquery: SubqueryExpression =>
      subquery.withNewPlan(within(lifted, subquery.plan))
    }

  private def within(lifted: LiftedSources, plan: LogicalPlan): LogicalPlan = plan match {
    case LiftedSource(index, _) => lifted.sources(index)
    case other => putBack(lifted, other.mapChildren(within(lifted, _)))
  }

  /**
   * Puts limits right above the sorts they belong to, which may be by columns that the subquery doesn't
   * give: only there Spark finds the order in which it counts rows for each outer row.
   */
  private def limitsOnSorts(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case Offset(count, Project(columns, sort: Sort)) => Project(columns, Offset(count, sort))
    case LocalLimit(count, Project(columns, sorted @ (_: Sort | Offset(_, _: Sort)))) =>
      Project(columns, LocalLimit(count, sorted))
    case GlobalLimit(count, Project(columns, limit: LocalLimit)) =>
      Project(columns, GlobalLimit(count, limit))
  }
}
