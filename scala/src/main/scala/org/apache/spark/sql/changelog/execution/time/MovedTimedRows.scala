// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.execution.streaming.state.{StateStore, UnsafeRowPair}
import org.apache.spark.sql.types.StructType

/**
 * Takes over rows that [[TimedRows]] of other partitions have kept. What they are found by is made of them.
 *
 * @param keySchema
 *   the columns of the state's key
 * @param notesTimes
 *   whether it is also asked at which times a row is there
 */
final class MovedTimedRows(keySchema: StructType, store: StateStore, notesTimes: Boolean) {
  private val rows =
    new TimedRows(toAttributes(StructType(keySchema.drop(TimedRows.Head))), store)

  /** Takes over an entry of a row, or of what time it was. */
  def add(entry: UnsafeRowPair): Unit =
    if (TimedRows.isClock(entry.key)) {
      // all partitions have had the same batches
      rows.setLastTime(math.max(entry.value.getLong(0), rows.lastTime.getOrElse(0L)))
    } else {
      val place = TimedRows.placeOf(entry.key)
      val row = rows.rowOf(entry)
      rows.put(place, row, entry.value.getLong(0), entry.value.getBoolean(1))
      if (notesTimes) rows.noteTime(row, place, 1)
    }
}

object MovedTimedRows {

  /** Whether an entry is that of a row, which belongs to one partition. */
  def isRow(key: UnsafeRow): Boolean = TimedRows.isRow(key)

  /** Whether an entry says what time it was, which all partitions are to know. */
  def isClock(key: UnsafeRow): Boolean = TimedRows.isClock(key)
}
