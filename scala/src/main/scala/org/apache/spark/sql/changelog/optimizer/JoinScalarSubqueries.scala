// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{LeftOuter, LeftSingle}
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Turns scalar subqueries over changing tables into joins with their one row.
 * {{{
 *   Filter fare > scalar-subquery             Project [fare]
 *   :  +- Aggregate [avg(fare)]               +- Filter fare > avg
 *   +- rides                          =>         +- Join LeftOuter
 *                                                   :- rides
 *                                                   +- Aggregate [avg(fare) AS avg]
 * }}}
 * Spark would run the subquery before the query and see one batch's changes only. Where more than
 * one row is possible the join is a `LeftSingle`, which fails as the subquery would. Leaves alone
 * subqueries over static tables, and correlated ones, which are joins by now.
 */
object JoinScalarSubqueries extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case node @ (_: Project | _: Filter | _: Aggregate) =>
      val subqueries = mutable.LinkedHashMap.empty[Expression, (LogicalPlan, Attribute)]
      val replaced = node.transformExpressions {
        case subquery: ScalarSubquery
            if subquery.outerAttrs.isEmpty && isChanging(subquery.plan) =>
          subqueries
            .getOrElseUpdate(
              subquery.canonicalized, {
                val value = Alias(subquery.plan.output.head, "scalarsubquery")()
                (Project(Seq(value), apply(subquery.plan)), value.toAttribute)
              })
            ._2
      }
      if (subqueries.isEmpty) node
      else {
        val joined = subqueries.values.foldLeft(node.children.head) { case (left, (right, _)) =>
          val joinType = if (right.maxRows.exists(_ <= 1)) LeftOuter else LeftSingle
          Join(left, right, joinType, None, JoinHint.NONE)
        }
        val result = replaced.withNewChildren(Seq(joined))
        if (result.output == node.output) result else Project(node.output, result)
      }
  }

  private def isChanging(plan: LogicalPlan): Boolean =
    plan.exists(_.isInstanceOf[FromChangelog])
}
