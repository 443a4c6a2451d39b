// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.expiry

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * Says when an operator has to look at an entry of its state, as the watermark moves on.
 *
 * Times are in microseconds: an entry is due when the watermark has come to its time.
 */
trait EntryTimes {

  /**
   * When an entry is due; [[EntryTimes.Never]] if it never is.
   *
   * @param after
   *   up to which time the entry has been looked at: if it can be due several times, the first one
   *   after it is meant
   */
  def dueAt(key: UnsafeRow, value: UnsafeRow, after: Long): Long

  /**
   * Whether an entry that is written, or removed (`value` is null), may let others be over that were
   * looked at before. Then its key is handed out with what is due next, whatever its time.
   */
  def bearsOnOthers(value: UnsafeRow): Boolean = false
}

object EntryTimes {
  val Never: Long = Long.MaxValue

  /** Before all times. */
  val Always: Long = Long.MinValue

  /** The times of entries whose key, of the columns `key`, holds the event time `column`. */
  def ofKey(column: Attribute, key: Seq[Attribute]): EntryTimes = {
    val timeOf = new EventTimeOf(column, key)
    (key, _, _) => timeOf(key)
  }
}

/** Reads an event time, or the end of a window of one, from a column of a row. */
final class EventTimeOf(ordinal: Int, dataType: DataType) {

  def this(column: Attribute, columns: Seq[Attribute]) =
    this(columns.map(_.exprId).indexOf(column.exprId), column.dataType)

  require(ordinal >= 0)

  private val numFields = dataType match {
    case window: StructType => window.size
    case _ => 0
  }

  /** In microseconds; never if it is NULL. */
  def apply(row: InternalRow): Long =
    if (row.isNullAt(ordinal)) EntryTimes.Never
    else if (numFields == 0) row.getLong(ordinal)
    else {
      val window = row.getStruct(ordinal, numFields)
      if (window.isNullAt(1)) EntryTimes.Never else window.getLong(1)
    }
}
