// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Count}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils

import org.apache.spark.sql.changelog.plans.GroupValue

/**
 * Lets equal groups, and equal values that are counted, have equal bytes, as a state store finds its
 * entries by their bytes.
 *
 * {{{
 *   Aggregate [name], [name, count(DISTINCT nick)]
 *     =>
 *   Aggregate [collationkey(name)], [group_value(name) AS name, count(DISTINCT collationkey(nick))]
 * }}}
 */
private[optimizer] object GroupByCollationKey {

  def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp { case aggregate: Aggregate =>
    countByKey(groupByKey(aggregate))
  }

  private def groupByKey(aggregate: Aggregate): Aggregate =
    if (!aggregate.groupingExpressions.exists(isUnstable)) aggregate
    else {
      val groups = aggregate.groupingExpressions.filter(isUnstable)
      def shown(expression: Expression): Expression = expression match {
        case call: AggregateExpression => call
        case group if groups.exists(_.semanticEquals(group)) =>
          GroupValue(group).toAggregateExpression()
        case other => other.mapChildren(shown)
      }
      aggregate.copy(
        groupingExpressions = aggregate.groupingExpressions.map {
          case group if isUnstable(group) => CollationKey.injectCollationKey(group)
          case group => group
        },
        aggregateExpressions = aggregate.aggregateExpressions.map {
          case column: Attribute if groups.exists(_.semanticEquals(column)) =>
            Alias(shown(column), column.name)(column.exprId, column.qualifier)
          case other => shown(other).asInstanceOf[NamedExpression]
        })
    }

  private def countByKey(aggregate: Aggregate): Aggregate =
    aggregate.copy(aggregateExpressions = aggregate.aggregateExpressions.map { result =>
      result
        .transform {
          case call @ AggregateExpression(count: Count, _, true, _, _)
              if count.children.exists(isUnstable) =>
            call.copy(aggregateFunction =
              count.copy(children = count.children.map(CollationKey.injectCollationKey)))
        }
        .asInstanceOf[NamedExpression]
    })

  private def isUnstable(group: Expression): Boolean =
    !UnsafeRowUtils.isBinaryStable(group.dataType)
}
