// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{RowTtl, Skew, StateTtl, TemporalFilter}

/**
 * Moves what a `STATE_TTL` hint says up to the operator that keeps the rows.
 * {{{
 *   Join                                   Join
 *   :- Project [id]                        :- StateTtl 3d
 *   :  +- Filter city = 'Oslo'      =>     :  +- Project [id]
 *   :     +- StateTtl 3d                   :     +- Filter city = 'Oslo'
 *   :        +- orders                     :        +- orders
 *   +- customers                           +- customers
 * }}}
 * So the hint is in the way of none of Spark's rules that push filters and projections down.
 */
object LiftStateTtl extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case node @ (_: Project | _: Filter | _: Generate | _: Expand | _: AppendColumns |
        _: TemporalFilter | _: RowTtl | _: Skew) =>
      node.children.head match {
        // what becomes a join keeps rows, too
        case hint: StateTtl if node.subqueries.nonEmpty => hint.copy(child = node)
        case hint: StateTtl => hint.copy(child = node.withNewChildren(Seq(hint.child)))
        case _ => node
      }
    // what stands closer to the operator is said about it
    case StateTtl(ttl, StateTtl(_, child)) => StateTtl(ttl, child)
  }
}
