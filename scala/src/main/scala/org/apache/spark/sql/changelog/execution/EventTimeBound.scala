// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.catalyst.expressions.{Attribute, BasePredicate, Predicate}
import org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport

/**
 * How a watermark bounds a state whose key holds an event time, or a window of one: nobody will
 * change what is older than it.
 *
 * @param column
 *   the event time
 * @param late
 *   the watermark, in ms, at and below which a change comes too late: that of the batch before
 * @param over
 *   the watermark, in ms, at and below which an entry is over after this batch
 */
final case class EventTimeBound(column: Attribute, late: Option[Long], over: Option[Long]) {

  /** Tells of a row, of the columns `input`, whether it comes too late; none if no row can. */
  def isLate(input: Seq[Attribute]): Option[BasePredicate] =
    WatermarkSupport
      .watermarkExpression(Some(column), late)
      .map(Predicate.create(_, input))

  /** The watermark of this batch, in ms, if it is another than that of the batch before. */
  def moved: Option[Long] = BatchTime.moved(late, over)
}

object EventTimeBound {

  /** The bound of a state with the columns `key`, if there is an event time among them. */
  def apply(key: Seq[Attribute], time: => BatchTime): Option[EventTimeBound] =
    columnOf(key).map(EventTimeBound(_, time.lateWatermark, time.overWatermark))

  /** The first event time, or window of one, among `columns`. */
  def columnOf(columns: Seq[Attribute]): Option[Attribute] =
    WatermarkSupport.findEventTimeColumn(columns, allowMultipleEventTimeColumns = true)
}

/**
 * What time it is for one operator in one batch.
 *
 * @param lateWatermark
 *   the watermark of the batch before, in ms; none before there is one
 * @param overWatermark
 *   the watermark of this batch, in ms; none before there is one
 * @param timestamp
 *   when this batch was begun, in ms since 1970; the same if it is run again
 * @param previousTimestamp
 *   when the batch before was begun
 */
final case class BatchTime(
    lateWatermark: Option[Long],
    overWatermark: Option[Long],
    timestamp: Long,
    previousTimestamp: Long) {

  /** The watermark of this batch, in ms, if it is another than that of the batch before. */
  def moved: Option[Long] = BatchTime.moved(lateWatermark, overWatermark)
}

object BatchTime {
  private[execution] def moved(late: Option[Long], over: Option[Long]): Option[Long] =
    over.filter(_ > late.getOrElse(0L))
}
