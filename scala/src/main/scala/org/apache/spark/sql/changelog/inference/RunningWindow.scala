// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  DeclarativeAggregate
}
import org.apache.spark.sql.catalyst.plans.logical.Window
import org.apache.spark.sql.types.AnyTimestampType

import org.apache.spark.sql.changelog.inference.times.EventTime

/**
 * Window functions over all rows up to the current one, in the order of event time: what they give
 * for a row is certain once the watermark has passed it, and needs no other row again.
 */
object RunningWindow {

  /** The event time that orders the rows of `window`, if all its functions are of this kind. */
  def unapply(window: Window): Option[Attribute] = window.orderSpec match {
    case Seq(SortOrder(time: Attribute, Ascending, _, _))
        if EventTime.columnOf(time).isDefined && AnyTimestampType.acceptsType(time.dataType) &&
          window.windowExpressions.flatMap(calls).forall(isRunning) =>
      Some(time)
    case _ => None
  }

  /** The calls of window functions in an expression. */
  def calls(expression: Expression): Seq[WindowExpression] =
    expression.collect { case call: WindowExpression => call }

  /** Whether a call sees the rows with the same time as its own, which may come later. */
  def seesPeers(call: WindowExpression): Boolean = frame(call).exists(_.frameType == RangeFrame)

  private def isRunning(call: WindowExpression): Boolean =
    frame(call).exists(frame => frame.lower == UnboundedPreceding && frame.upper == CurrentRow) &&
      (call.windowFunction match {
        case AggregateExpression(_: DeclarativeAggregate, _, isDistinct, _, _) => !isDistinct
        case _: RowNumber | _: Rank | _: DenseRank => true
        case _ => false
      })

  private def frame(call: WindowExpression): Option[SpecifiedWindowFrame] =
    call.windowSpec.frameSpecification match {
      case frame: SpecifiedWindowFrame => Some(frame)
      case _ => None
    }
}
