// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.ArrayType

import org.apache.spark.sql.changelog.execution.expiry.{EntryTimes, EventTimeOf}

/** When the records of a join's state are over: no further row of the other side can meet theirs. */
private[join] final class JoinEntryTimes(layout: JoinLayout, bounds: Seq[JoinSideTimeBound])
    extends EntryTimes {
  private val timesOfSide = bounds.map(timesOf).toArray

  override def dueAt(key: UnsafeRow, value: UnsafeRow, after: Long): Long =
    timesOfSide(key.getByte(0).toInt).dueAt(key, value, after)

  private def timesOf(bound: JoinSideTimeBound): EntryTimes =
    (bound.keyOrdinal, bound.row) match {
      case (Some(ordinal), _) =>
        // the side stands before the join key
        val timeOf = new EventTimeOf(ordinal + 1, layout.keySchema(ordinal + 1).dataType)
        (key, _, _) => timeOf(key)
      case (None, Some((column, delay))) =>
        val timeOf = new EventTimeOf(column, bound.side.columns)
        def overAt(row: UnsafeRow): Long = {
          val time = timeOf(row)
          if (time == EntryTimes.Never) time else time + delay
        }
        timesOfRows(bound.side, overAt)
      case _ => (_, _, _) => EntryTimes.Never
    }

  /** Records go with the last of their rows. */
  private def timesOfRows(side: JoinSideLayout, overAt: UnsafeRow => Long): EntryTimes = {
    val numColumns = side.columns.size
    val ordinal = layout.rowOrdinal(side)
    side.row match {
      case Some(_: ArrayType) =>
        (_, value, _) => {
          val rows = value.getArray(ordinal)
          var last = EntryTimes.Always
          var index = 0
          while (index < rows.numElements()) {
            val row = rows.getStruct(index, numColumns).asInstanceOf[UnsafeRow]
            last = math.max(last, overAt(row))
            index += 1
          }
          last
        }
      case Some(_) => (_, value, _) => overAt(value.getStruct(ordinal, numColumns))
      case None =>
        val suffix = layout.suffixOrdinal(side)
        (key, _, _) => overAt(key.getStruct(suffix, numColumns))
    }
  }
}
