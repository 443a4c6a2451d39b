// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.inference.keys.ProjectKeys
import org.apache.spark.sql.changelog.plans.{RowTtl, Skew, TemporalFilter}

/**
 * Moves what a `SKEW` hint says up to the join that it is about.
 * {{{
 *   Join auction = id                         Join auction = id
 *   :- Project [auction, price]               :- Skew [auction] [1007]
 *   :  +- Filter price > 10            =>     :  +- Project [auction, price]
 *   :     +- Skew [auction] [1007]            :     +- Filter price > 10
 *   :        +- bids                          :        +- bids
 *   +- auctions                               +- auctions
 * }}}
 * So the hint is in the way of none of Spark's rules that push filters and projections down. It stays
 * below what leaves its columns out, and below subqueries, which become joins.
 */
object LiftSkew extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[Skew])) plan
    else plan.transformUp { case node => lifted(node).getOrElse(node) }

  /** A hint over the node that it stands below, if it goes on to say something there. */
  private[optimizer] def lifted(node: LogicalPlan): Option[Skew] = node match {
    case Project(columns, skew: Skew) if node.subqueries.isEmpty =>
      val named = skew.columns.flatMap { column =>
        columns
          .find(ProjectKeys.carriedColumn(_).exists(_.exprId == column.exprId))
          .map(_.toAttribute)
      }
      over(node, skew, named)
    case _: Filter | _: Generate | _: Expand | _: AppendColumns | _: TemporalFilter | _: RowTtl |
        _: Sort =>
      node.children.head match {
        case skew: Skew if node.subqueries.isEmpty =>
          over(node, skew, skew.columns.filter(node.outputSet.contains))
        case _ => None
      }
    case _ => None
  }

  private def over(node: LogicalPlan, skew: Skew, columns: Seq[Attribute]): Option[Skew] =
    if (columns.size < skew.columns.size) None
    else Some(skew.copy(columns = columns, child = node.withNewChildren(Seq(skew.child))))
}
