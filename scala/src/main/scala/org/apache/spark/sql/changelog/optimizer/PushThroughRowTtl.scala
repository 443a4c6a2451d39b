// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression.hasSubquery
import org.apache.spark.sql.catalyst.expressions.{And, Expression, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{PassingTime, RowTtl}

/**
 * Filters rows before it is noted when they came.
 * {{{
 *   Filter city = 'Oslo'           RowTtl 3 days
 *   +- RowTtl 3 days         =>    +- Filter city = 'Oslo'
 *      +- orders                      +- orders
 * }}}
 * Equal rows are let through together, so it is the same which comes first. Not so with a condition on
 * the time: it would let rows come again later.
 */
object PushThroughRowTtl extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[RowTtl])) plan
    else {
      plan.transformDown { case filter @ Filter(condition, ttl: RowTtl) =>
        val (below, above) = splitConjunctivePredicates(condition).partition(isOfTheRow)
        if (below.isEmpty) filter
        else {
          val filtered = ttl.copy(child = Filter(below.reduce(And(_, _)), ttl.child))
          above.reduceOption(And(_, _)).fold[LogicalPlan](filtered)(Filter(_, filtered))
        }
      }
    }

  private def isOfTheRow(condition: Expression): Boolean =
    condition.deterministic && !hasSubquery(condition) && !PassingTime.isIn(condition)
}
