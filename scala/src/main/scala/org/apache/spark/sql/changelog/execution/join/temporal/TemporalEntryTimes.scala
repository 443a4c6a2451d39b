// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

import org.apache.spark.sql.changelog.execution.expiry.EntryTimes

/**
 * When a join key has something that is certain: with its first left row, and with each version, which lets
 * go the one before it.
 */
private[temporal] final class TemporalEntryTimes(layout: TemporalJoinLayout) extends EntryTimes {

  override def dueAt(key: UnsafeRow, value: UnsafeRow, after: Long): Long =
    key.getByte(0) match {
      case 0 => firstTime(value, layout.left, EntryTimes.Always)
      case 1 => firstTime(value, layout.right, after)
      // a directory
      case _ => EntryTimes.Never
    }

  /** The time of the first row of a run after `after`. Rows are in order of time. */
  private def firstTime(value: UnsafeRow, side: TemporalSideLayout, after: Long): Long = {
    val rows = value.getArray(side.number)
    def time(index: Int): Long =
      rows.getStruct(index, side.columns.size).getLong(side.timeOrdinal)
    var (low, high) = (0, rows.numElements())
    while (low < high) {
      val middle = (low + high) >>> 1
      if (time(middle) <= after) low = middle + 1 else high = middle
    }
    if (low == rows.numElements()) EntryTimes.Never else time(low)
  }
}
