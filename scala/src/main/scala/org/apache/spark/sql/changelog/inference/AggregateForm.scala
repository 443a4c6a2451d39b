// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.expressions.{
  Expression,
  NamedExpression,
  PythonUDAF,
  SessionWindow
}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, EventTimeWatermark}
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.types.BooleanType

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.plans.GroupValue

/** The state that a call of an aggregate function needs. */
sealed trait AggregateForm

object AggregateForm {

  /** A buffer that takes in a batch by merging: Spark's own, or one that counts backwards too. */
  case object Buffer extends AggregateForm

  /** The best of counted values. */
  case object Extremum extends AggregateForm

  /** All of a group's rows, over which Spark's own function is computed again. */
  case object Rows extends AggregateForm

  /** The form of a call; a DISTINCT one has it over distinct values. */
  def apply(call: AggregateExpression, retracts: Boolean): AggregateForm =
    call.aggregateFunction match {
      case _: PythonUDAF => Rows
      case _: GroupValue => Buffer
      case _ if !retracts => Buffer
      // a value is shown by one of the texts that are equal to it, which may go before the others
      case function if call.isDistinct && !function.children.forall(isStable) => Rows
      case Min(value) if value.dataType == BooleanType => Buffer
      case Max(value) if value.dataType == BooleanType => Buffer
      case _: Count | _: Sum | _: Average => Buffer
      case _: CentralMomentAgg | _: Covariance | _: PearsonCorrelation => Buffer
      case _: RegrSlope | _: RegrIntercept => Buffer
      case _: BitAggregate => Buffer
      case _: Min | _: Max | _: MinBy | _: MaxBy => Extremum
      case _ => Rows
    }

  private def isStable(argument: Expression): Boolean =
    UnsafeRowUtils.isBinaryStable(argument.dataType)

  /** Whether the distinct values of a call are kept. */
  def keepsDistinct(call: AggregateExpression, retracts: Boolean): Boolean =
    call.isDistinct && apply(call, retracts) == Buffer

  /** Whether an aggregate emits a group once, when the watermark has passed it. */
  def waitsForWatermark(node: AnnotatedPlan): Boolean = node.plan match {
    case agg: Aggregate => waits(agg, node.mode.kinds, !node.children.head.mode.isInsertOnly)
    case _ => false
  }

  /** Whether rows must be kept to compute all calls of `agg` again, as one of them needs it. */
  def needsRows(agg: Aggregate, calls: Seq[AggregateExpression], retracts: Boolean): Boolean =
    calls.exists(apply(_, retracts) == Rows) || groupsSessions(agg)

  /** Whether it groups by `session_window`, whose bounds any row may move. */
  def groupsSessions(agg: Aggregate): Boolean =
    agg.groupingExpressions.exists(isSession)

  /**
   * Whether what a function makes of rows that only come depends on their order. Totals and moments
   * are kept so that none does.
   */
  def seesOrder(function: AggregateFunction): Boolean = function match {
    case _: Count | _: Sum | _: Average | _: Min | _: Max => false
    case _: CentralMomentAgg | _: Covariance | _: PearsonCorrelation => false
    case _: RegrSlope | _: RegrIntercept => false
    case _: BitAggregate | _: HyperLogLogPlusPlus | _: Percentile => false
    case group: GroupValue => !isStable(group)
    case _ => true
  }

  /**
   * Whether sessions are kept with their buffers: rows only come, and no call needs them, nor a
   * batch's rows in an order, which buffers that merge have none of.
   */
  def keepsSessions(agg: Aggregate, retracts: Boolean): Boolean = {
    val (sessions, others) = agg.groupingExpressions.partition(isSession)
    sessions.nonEmpty && !retracts &&
    calls(agg).forall { call =>
      !call.isDistinct && apply(call, retracts) == Buffer && !seesOrder(call.aggregateFunction)
    } &&
    // sessions end by their own time
    !others.exists {
      case named: NamedExpression => named.metadata.contains(EventTimeWatermark.delayKey)
      case _ => false
    }
  }

  /** Whether it emits a group once, before it is annotated. */
  def waits(agg: Aggregate, produced: ModifyKindSet, retracts: Boolean): Boolean =
    produced.isInsertOnly && (calls(agg).nonEmpty || retracts || groupsSessions(agg))

  def isSession(group: Expression): Boolean = group match {
    case named: NamedExpression => named.metadata.contains(SessionWindow.marker)
    case _ => false
  }

  /** Whether it computes functions of Python, which Spark does not mix with others. */
  def callsPython(agg: Aggregate): Boolean =
    calls(agg).exists(_.aggregateFunction.isInstanceOf[PythonUDAF])

  /** The calls of functions in `agg`, each once. */
  def calls(agg: Aggregate): Seq[AggregateExpression] =
    agg.aggregateExpressions
      .flatMap(_.collect { case call: AggregateExpression => call })
      .distinct
}
