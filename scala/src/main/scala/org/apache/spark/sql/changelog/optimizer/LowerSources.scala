// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions._
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
      plan.transformUpWithSubqueries {
        case SkipRows(count, child) => Offset(count, child)
        case node if node.children.headOption.exists(_.isInstanceOf[LiftedSources]) =>
          val lifted = node.children.head.asInstanceOf[LiftedSources]
          putBack(lifted, node.withNewChildren(lifted.query +: node.children.tail))
      }
    }

  private def putBack(lifted: LiftedSources, plan: LogicalPlan): LogicalPlan =
    plan.transformExpressions { case subquery: SubqueryExpression =>
      val plan = within(lifted, subquery.plan)
      subquery.withNewPlan(if (subquery.isCorrelated) limitsOnSorts(plan) else plan)
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

  private def within(lifted: LiftedSources, plan: LogicalPlan): LogicalPlan = plan match {
    case LiftedSource(index, _) => lifted.sources(index)
    case other =>
      putBack(lifted, other.mapChildren(within(lifted, _)))
        .transformExpressions(atTimeOf(lifted.time))
  }

  /** What time it is, as Spark puts it into the expressions of a batch's plan. */
  private def atTimeOf(time: Expression): PartialFunction[Expression, Expression] =
    time.collectFirst { case batch: CurrentBatchTimestamp => batch.timestampMs } match {
      case Some(millis) => {
        case now: CurrentTimestamp => CurrentBatchTimestamp(millis, now.dataType, Some("UTC"))
        case now: LocalTimestamp => CurrentBatchTimestamp(millis, now.dataType, now.timeZoneId)
        case today: CurrentDate => CurrentBatchTimestamp(millis, today.dataType, today.timeZoneId)
      }
      case None => PartialFunction.empty
    }
}
