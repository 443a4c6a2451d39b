// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  Expression,
  UnsafeProjection,
  UnsafeRow
}

/**
 * From which watermark on a row is final: the latest of its event times that are not NULL.
 *
 * @param times
 *   event times of a row, each a timestamp
 * @param delays
 *   what is added to each of them, in ms
 * @param columns
 *   the columns of a row
 */
private[time] final class CloseTimes(
    times: Seq[Expression],
    delays: Seq[Long],
    columns: Seq[Attribute]) {
  private val timesOf = UnsafeProjection.create(times, columns)
  private val addedMs = delays.toArray

  /** In ms; [[CloseTimes.NoTime]] if all are NULL. */
  def apply(row: UnsafeRow): Long = {
    val times = timesOf(row)
    var latest = CloseTimes.NoTime
    var index = 0
    while (index < addedMs.length) {
      if (!times.isNullAt(index)) {
        val time = addedMs(index) - Math.floorDiv(-times.getLong(index), 1000L)
        latest = math.max(latest, math.max(0L, math.min(time, TimedRows.LastTime)))
      }
      index += 1
    }
    latest
  }
}

private[time] object CloseTimes {
  val NoTime: Long = Long.MinValue
}
