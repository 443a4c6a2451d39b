// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport

import org.apache.spark.sql.changelog.compat.JoinBound
import org.apache.spark.sql.changelog.inference.times.JoinWatermark
import org.apache.spark.sql.changelog.inference.times.JoinWatermark.Sometime
import org.apache.spark.sql.changelog.microbatch.BatchTime
import org.apache.spark.sql.changelog.plans.SideForm

/**
 * How a watermark bounds the rows of one side of a join.
 *
 * @param late
 *   tells of a row that comes whether it is too late; none if no row can be
 * @param keyOrdinal
 *   which column of the join key is the event time by which rows go
 * @param row
 *   else the event time of a row by which it goes, and how long after, in microseconds
 */
private[join] final case class JoinSideTimeBound(
    side: JoinSideLayout,
    late: Option[Expression],
    keyOrdinal: Option[Int],
    row: Option[(Attribute, Long)]) {

  /** Whether rows go once they are over. */
  def isBounded: Boolean = keyOrdinal.isDefined || row.isDefined
}

private[join] object JoinSideTimeBound {

  /** Whether a watermark bounds the left and the right side, at whatever time. */
  def isBounded(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression]): Seq[Boolean] =
    watermark(left, right, condition).fold(Seq(false, false))(_.over(Sometime).map(_.isDefined))

  /** How long after the watermark has passed their event times rows of the result may come, in ms. */
  def delay(left: JoinSideLayout, right: JoinSideLayout, condition: Option[Expression]): Long =
    watermark(left, right, condition).fold(0L)(_.delay)

  /** None if nothing is kept of the left side: it comes at any time, and looks up rows of any time. */
  private def watermark(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression]): Option[JoinWatermark] =
    if (left.form == SideForm.Nothing) None
    else Some(JoinWatermark(left.columns, right.columns, left.key, right.key, condition))

  /** The bounds of both sides. */
  def apply(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression],
      time: BatchTime): Seq[JoinSideTimeBound] = {
    val bounds = watermark(left, right, condition)
    val sometime =
      bounds.fold(Seq.fill(2)(Option.empty[JoinBound]))(_.over(Sometime))
    val eventTimes = bounds.fold(Seq.fill(2)(Option.empty[Expression]))(_.lateBy)
    Seq(left, right).zip(sometime).zip(eventTimes).map { case ((side, bound), eventTime) =>
      JoinSideTimeBound(
        side,
        olderThan(eventTime, time.lateWatermark),
        bound.collect { case JoinBound.InKey(ordinal, _) => ordinal },
        bound.collect { case row: JoinBound.InRow =>
          // a row may come to be over before changes of it come too late
          val delay = math.max(0L, Sometime - row.watermark)
          (eventTime.get.asInstanceOf[Attribute], DateTimeUtils.millisToMicros(delay))
        })
    }
  }

  private def olderThan(
      eventTime: Option[Expression],
      watermark: Option[Long]): Option[Expression] =
    if (eventTime.isEmpty) None else WatermarkSupport.watermarkExpression(eventTime, watermark)
}
