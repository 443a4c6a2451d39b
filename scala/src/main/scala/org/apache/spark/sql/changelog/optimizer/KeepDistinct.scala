// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  AggregateFunction
}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Subquery}
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Keeps aggregates of distinct values in subqueries over changing tables as they were written.
 *
 * {{{
 *   count(DISTINCT a), count(DISTINCT b)   =>   count(DistinctValues(a)), count(DistinctValues(b))
 * }}}
 *
 * Spark optimizes a subquery to its end before it looks at the query around it. In that end it makes
 * one aggregate over all distinct values of several, which only a table that stays can be read by. All
 * else that it does there goes for changing tables, too.
 */
private[optimizer] object KeepDistinct {

  /** What is done to a subquery as soon as the rules have run that a query goes through itself. */
  def hide(subquery: Subquery): Subquery =
    if (!subquery.exists(isChanging)) subquery
    else {
      subquery
        .transformAllExpressions {
          case call: AggregateExpression if call.isDistinct =>
            call.copy(
              aggregateFunction = DistinctValues(call.aggregateFunction),
              isDistinct = false)
        }
        .asInstanceOf[Subquery]
    }

  /** The same with distinct values as they were, when the subquery is part of the query. */
  def show(plan: LogicalPlan): LogicalPlan = plan.transformAllExpressionsWithSubqueries {
    case call @ AggregateExpression(DistinctValues(function), _, _, _, _) =>
      call.copy(aggregateFunction = function, isDistinct = true)
  }

  private def isChanging(plan: LogicalPlan): Boolean = plan match {
    case source: FromChangelog => source.streaming
    case _ => false
  }
}

/** An aggregate of distinct values that Spark does not take for one. It is never executed. */
private case class DistinctValues(function: AggregateFunction)
    extends AggregateFunction
    with CodegenFallback {

  override def children: Seq[Expression] = Seq(function)
  override def dataType: DataType = function.dataType
  override def nullable: Boolean = function.nullable
  override def defaultResult: Option[Literal] = function.defaultResult
  override def aggBufferSchema: StructType = function.aggBufferSchema
  override def aggBufferAttributes: Seq[AttributeReference] = function.aggBufferAttributes
  override def inputAggBufferAttributes: Seq[AttributeReference] =
    function.inputAggBufferAttributes

  override def eval(input: InternalRow): Any =
    throw SparkException.internalError(s"$this is never computed")

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): DistinctValues =
    copy(function = newChildren.head.asInstanceOf[AggregateFunction])
}
