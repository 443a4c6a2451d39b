// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

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
  private[changelog] def moved(late: Option[Long], over: Option[Long]): Option[Long] =
    over.filter(_ > late.getOrElse(0L))
}
