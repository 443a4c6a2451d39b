// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.expressions.{
  Expression, NamedExpression, PythonUDAF, SessionWindow
}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, EventTimeWatermark}
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.types.BooleanType

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.plans.GroupValue

/** AggregateForm: the state needed by one call of an aggregate function. */
sealed trait AggregateForm

object AggregateForm {

  /**
   * A buffer that merges a batch's buffer: Spark's own buffer, or a buffer that also subtracts.
   */
  case object Buffer extends AggregateForm

  /** The best of counted values. */
  case object Extremum extends AggregateForm

  /** All rows of a group. Spark's own function is recomputed over the rows. */
  case object Rows extends AggregateForm

  /** Returns the form of a call. For a DISTINCT call, the form applies to the distinct values. */
  def apply(call: AggregateExpression, retracts: Boolean): AggregateForm =
    call.aggregateFunction match {
      case _: PythonUDAF => Rows
      case _: GroupValue => Buffer
      case _ if !retracts => Buffer
      // Equal texts may differ in bytes, and the displayed text may be deleted first.
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

  /** Whether the distinct values of a call are stored. */
  def keepsDistinct(call: AggregateExpression, retracts: Boolean): Boolean =
    call.isDistinct && apply(call, retracts) == Buffer

  /** Whether an aggregate emits each group once, after the watermark passes the group. */
  def waitsForWatermark(node: AnnotatedPlan): Boolean = node.plan match {
    case agg: Aggregate => waits(agg, node.mode.kinds, !node.children.head.mode.isInsertOnly)
    case _ => false
  }

  /**
   * Whether the rows of groups must be stored, because a call of `agg` or `session_window` needs
   * them.
   */
  def needsRows(agg: Aggregate, calls: Seq[AggregateExpression], retracts: Boolean): Boolean =
    calls.exists(apply(_, retracts) == Rows) || groupsSessions(agg)

  /** Whether `agg` groups by `session_window`. Any row may move the bounds of a session. */
  def groupsSessions(agg: Aggregate): Boolean =
    agg.groupingExpressions.exists(isSession)

  /**
   * Whether the result of a function over insert-only rows depends on the order of rows. The
   * buffers of totals and moments are independent of the order.
   */
  def dependsOnOrder(function: AggregateFunction): Boolean = function match {
    case _: Count | _: Sum | _: Average | _: Min | _: Max => false
    case _: CentralMomentAgg | _: Covariance | _: PearsonCorrelation => false
    case _: RegrSlope | _: RegrIntercept => false
    case _: BitAggregate | _: HyperLogLogPlusPlus | _: Percentile => false
    case group: GroupValue => !isStable(group)
    case _ => true
  }

  /**
   * Whether sessions are stored as buffers instead of rows. Buffers require three things: the
   * input is insert-only, no call needs the rows, and no call depends on the order of a batch's
   * rows. Merged buffers have no order.
   */
  def keepsSessions(agg: Aggregate, retracts: Boolean): Boolean = {
    val (sessions, others) = agg.groupingExpressions.partition(isSession)
    sessions.nonEmpty && !retracts &&
    calls(agg).forall { call =>
      !call.isDistinct && apply(call, retracts) == Buffer && !dependsOnOrder(
        call.aggregateFunction)
    } &&
    // The session itself has the event time, so further grouping columns must not have a
    // watermark.
    !others.exists {
      case named: NamedExpression => named.metadata.contains(EventTimeWatermark.delayKey)
      case _ => false
    }
  }

  /** Whether `agg` emits each group once. For plans without annotations. */
  def waits(agg: Aggregate, produced: ModifyKindSet, retracts: Boolean): Boolean =
    produced.isInsertOnly && (calls(agg).nonEmpty || retracts || groupsSessions(agg))

  def isSession(group: Expression): Boolean = group match {
    case named: NamedExpression => named.metadata.contains(SessionWindow.marker)
    case _ => false
  }

  /** Whether `agg` calls Python functions. Spark does not mix them with other functions. */
  def callsPython(agg: Aggregate): Boolean =
    calls(agg).exists(_.aggregateFunction.isInstanceOf[PythonUDAF])

  /** Returns the distinct calls of aggregate functions in `agg`. */
  def calls(agg: Aggregate): Seq[AggregateExpression] =
    agg.aggregateExpressions
      .flatMap(_.collect { case call: AggregateExpression => call })
      .distinct
}
