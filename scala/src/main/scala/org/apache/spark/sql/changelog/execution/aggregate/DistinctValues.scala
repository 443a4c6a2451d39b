// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.{StateColumns, UnmatchedRetractions}

/**
 * Counts the values of one partition's groups.
 *
 * @param input
 *   the columns of the rows handed in
 */
private[aggregate] final class DistinctValues(
    layout: DistinctLayout,
    input: Seq[Attribute],
    store: StateStore,
    unmatched: UnmatchedRetractions) {
  private val key = GenerateUnsafeProjection.generate(layout.keyColumns, input)
  private val appears = GenerateUnsafeProjection.generate(layout.asGroup(1L), input)
  private val disappears = GenerateUnsafeProjection.generate(layout.asGroup(-1L), input)
  private val unchanged = GenerateUnsafeProjection.generate(layout.asItIs, input)

  private val tableOrdinal = ordinalOf(layout.table)
  private val valueOrdinals = layout.values.map(ordinalOf).toArray
  private val countOrdinal = layout.count.map(ordinalOf).getOrElse(-1)
  private val countRow = UnsafeRow.createFromByteArray(16, 1)
  countRow.setLong(0, 0L)

  /** Whether the last change wrote a value's count. */
  var wasWritten: Boolean = false

  /** Whether the last change removed a value. */
  var wasRemoved: Boolean = false

  /** What becomes of a row; null if its value is there as it was, or is not there as it was. */
  def change(row: InternalRow): InternalRow = {
    wasWritten = false
    wasRemoved = false
    val table = row.getInt(tableOrdinal)
    if (table < layout.firstTable) unchanged(row)
    else if (row.isNullAt(valueOrdinals(table - layout.firstTable))) null
    else if (countOrdinal < 0) add(row)
    else count(row, row.getLong(countOrdinal))
  }

  private def add(row: InternalRow): InternalRow = {
    val entry = key(row)
    if (store.get(entry) != null) null
    else {
      put(entry, 1L)
      appears(row)
    }
  }

  private def count(row: InternalRow, delta: Long): InternalRow = if (delta == 0) null
  else {
    val entry = key(row)
    val stored = store.get(entry)
    val before = if (stored == null) 0L else stored.getLong(0)
    val after = before + delta
    val missing = math.max(0L, -after) - math.max(0L, -before)
    if (missing > 0) unmatched(missing, StateColumns.keyText(layout.keyColumns, entry))
    if (after == 0) {
      store.remove(entry)
      wasRemoved = true
    } else put(entry, after)
    if (before <= 0 && after > 0) appears(row)
    else if (before > 0 && after <= 0) disappears(row)
    else null
  }

  private def put(entry: UnsafeRow, count: Long): Unit = {
    countRow.setLong(0, count)
    store.put(entry, countRow)
    wasWritten = true
  }

  private def ordinalOf(column: Attribute): Int = input.indexWhere(_.exprId == column.exprId)
}
