// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics
import org.apache.spark.sql.types.{IntegralType, LongType}

import org.apache.spark.sql.changelog.RowKind

/**
 * What `observe` measures of rows that change: by how much a batch moves each metric, so that those
 * of all batches add up to what batch Spark measures.
 *
 * {{{
 *   count(x)   =>   sum(x is NULL ? 0 : ±1)
 *   sum(x)     =>   sum(±x)
 * }}}
 * Over rows that only come that is what Spark measures anyway. Other functions, such as `max` and
 * `avg`, have no such share per batch.
 */
private[changelog] object SignedMetrics {

  /** Why the metrics can't be measured; none if they can. */
  def obstacle(metrics: CollectMetrics): Option[String] =
    calls(metrics).find(call => signed(call, Literal(RowKind.Insert)).isEmpty).map { call =>
      s"it measures ${DescribeNode.expression(call)}, and over rows that change only count and sum, " +
        "without DISTINCT, can be told batch by batch; select such a metric in a query of its own, " +
        "or observe the output of to_changelog, whose rows only come"
    }

  /** The metrics that `CollectMetrics` asks for, computed over changes. */
  def apply(metrics: CollectMetrics, kind: Attribute): Seq[NamedExpression] =
    metrics.metrics.map { metric =>
      metric
        .transformUp { case call: AggregateExpression => signed(call, kind).get }
        .asInstanceOf[NamedExpression]
    }

  private def calls(metrics: CollectMetrics): Seq[AggregateExpression] =
    metrics.metrics.flatMap(_.collect { case call: AggregateExpression => call })

  private def signed(call: AggregateExpression, kind: Expression): Option[Expression] = {
    def sumOf(value: Expression) = call.copy(aggregateFunction = Sum(value))
    call.aggregateFunction match {
      case _ if call.isDistinct => None
      case Count(values) =>
        val isCounted = values.filter(_.nullable).map(IsNotNull(_)).reduceOption[Expression](And)
        val sign = RowKind.signOf(kind)
        val counted = isCounted.fold(sign)(If(_, sign, Literal(0L)))
        Some(Coalesce(Seq(sumOf(counted), Literal(0L))))
      case Sum(value, context) =>
        val wide = if (value.dataType.isInstanceOf[IntegralType]) Cast(value, LongType) else value
        val signed = If(RowKind.isRetraction(kind), UnaryMinus(wide), wide)
        Some(call.copy(aggregateFunction = Sum(signed, context)))
      case _ => None
    }
  }
}
