// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import scala.collection.BufferedIterator

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

/**
 * Combines neighboring changes of a key to one row.
 *
 * {{{
 *   in    row, whether the change retracts the row, key
 *   out   the first retracted row, the first inserted row, the number of inserted rows; NULL for none
 * }}}
 */
private class NeighboursOfKey(
    changes: BufferedIterator[InternalRow],
    numColumns: Int,
    numKeyColumns: Int)
    extends Iterator[InternalRow] {
  private val result = new GenericInternalRow(3)

  override def hasNext: Boolean = changes.hasNext

  override def next(): InternalRow = {
    val key = keyOf(changes.head).copy()
    var come = 0L
    result.setNullAt(0)
    result.setNullAt(1)
    while (changes.hasNext && keyOf(changes.head) == key) {
      val change = changes.next()
      val isRetraction = change.getBoolean(1)
      val place = if (isRetraction) 0 else 1
      if (!isRetraction) come += 1
      if (result.isNullAt(place)) result.update(place, change.getStruct(0, numColumns).copy())
    }
    result.setLong(2, come)
    result
  }

  private def keyOf(change: InternalRow): InternalRow = change.getStruct(2, numKeyColumns)
}
