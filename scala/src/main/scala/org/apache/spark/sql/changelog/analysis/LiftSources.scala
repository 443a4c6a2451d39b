// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{
  FromChangelog,
  LiftedSource,
  LiftedSources,
  ToChangelog
}

/**
 * Makes the changing tables that subqueries read nodes of the plan.
 *
 * {{{
 *   ToChangelog                           ToChangelog
 *   +- Filter id IN (listquery)           +- Filter id IN (listquery)
 *      :  +- Project [uid]                   :  +- Project [uid]
 *      :     +- FromChangelog u       =>     :     +- LiftedSource 0
 *      +- FromChangelog t                    +- LiftedSources
 *                                               :- FromChangelog t
 *                                               +- FromChangelog u
 * }}}
 *
 * There a stream gets its rows. The subqueries stay what they are: when a batch is optimized their
 * sources are in place again, and Spark rewrites them as those of any query. Leaves alone what
 * subqueries read that never changes.
 */
object LiftSources extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      plan.transformUp {
        case root: ToChangelog if root.streaming => root.copy(child = lift(root.child))
      }
    }

  /** Below `from_changelog` a stream is Spark's own. */
  private def lift(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog => source
    case _ =>
      val sources = mutable.ArrayBuffer.empty[LogicalPlan]
      val without = inSubqueries(plan.mapChildren(lift), take(_, sources))
      if (sources.isEmpty) without
      else {
        val first = LiftedSources(without.children.head, sources.toSeq)
        without.withNewChildren(first +: without.children.tail)
      }
  }

  private def take(plan: LogicalPlan, sources: mutable.ArrayBuffer[LogicalPlan]): LogicalPlan =
    plan match {
      case source: FromChangelog if source.streaming =>
        sources += source
        LiftedSource(sources.size - 1, source)
      case source: FromChangelog => source
      case other => inSubqueries(other.mapChildren(take(_, sources)), take(_, sources))
    }

  private def inSubqueries(plan: LogicalPlan, rule: LogicalPlan => LogicalPlan): LogicalPlan =
    plan.transformExpressions { case subquery: SubqueryExpression =>
      subquery.withNewPlan(rule(subquery.plan))
    }
}
