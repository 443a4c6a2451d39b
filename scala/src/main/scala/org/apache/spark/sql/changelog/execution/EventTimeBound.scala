// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.catalyst.expressions.{Attribute, BasePredicate, Predicate}
import org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport

import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.microbatch.BatchTime

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
    EventTime
      .firstOf(key)
      .map(EventTimeBound(_, time.lateWatermark, time.overWatermark))
}
