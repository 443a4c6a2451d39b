// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.{StateColumns, UnmatchedRetractions}

/** Counts the values of one partition's groups. */
private[aggregate] abstract class DistinctValues(store: StateStore) {
  private val countRow = UnsafeRow.createFromByteArray(16, 1)
  countRow.setLong(0, 0L)

  /** Whether the last change wrote a value's count. */
  var wasWritten: Boolean = false

  /** Whether the last change removed a value. */
  var wasRemoved: Boolean = false

  /** How many changes each row stands for. */
  def changesPerRow: Int

  /** What becomes of a row's change; null if a value is there as it was, or is not as it was. */
  def change(row: InternalRow, index: Int): InternalRow = {
    wasWritten = false
    wasRemoved = false
    changed(row, index)
  }

  protected def changed(row: InternalRow, index: Int): InternalRow

  /** Whether the value is new, of which there is one more. */
  protected def add(entry: UnsafeRow): Boolean = {
    val isNew = store.get(entry) == null
    if (isNew) put(entry, 1L)
    isNew
  }

  /** The count of a value before. */
  protected def count(entry: UnsafeRow): Long = {
    val stored = store.get(entry)
    if (stored == null) 0L else stored.getLong(0)
  }

  protected def put(entry: UnsafeRow, count: Long): Unit = {
    countRow.setLong(0, count)
    store.put(entry, countRow)
    wasWritten = true
  }

  protected def remove(entry: UnsafeRow): Unit = {
    store.remove(entry)
    wasRemoved = true
  }
}

/**
 * Rows of groups, and rows of a group's values with the number of rows that have it.
 *
 * @param input
 *   the columns of the rows handed in
 */
private[aggregate] final class CombinedValues(
    layout: DistinctLayout,
    input: Seq[Attribute],
    store: StateStore,
    unmatched: UnmatchedRetractions)
    extends DistinctValues(store) {
  private val key = GenerateUnsafeProjection.generate(layout.key, input)
  private val appears = GenerateUnsafeProjection.generate(layout.asGroup(1L), input)
  private val disappears = GenerateUnsafeProjection.generate(layout.asGroup(-1L), input)
  private val unchanged = GenerateUnsafeProjection.generate(layout.asItIs, input)

  private val tableOrdinal = ordinalOf(layout.table)
  private val valueOrdinals = layout.values.map(ordinalOf).toArray
  private val countOrdinal = layout.count.map(ordinalOf).getOrElse(-1)

  override def changesPerRow: Int = 1

  override protected def changed(row: InternalRow, index: Int): InternalRow = {
    val table = row.getInt(tableOrdinal)
    if (table < layout.firstTable) unchanged(row)
    else if (row.isNullAt(valueOrdinals(table - layout.firstTable))) null
    else if (countOrdinal >= 0) count(row, row.getLong(countOrdinal))
    else if (add(key(row))) appears(row)
    else null
  }

  private def count(row: InternalRow, delta: Long): InternalRow = if (delta == 0) null
  else {
    val entry = key(row)
    val before = count(entry)
    val after = before + delta
    val missing = math.max(0L, -after) - math.max(0L, -before)
    if (missing > 0) unmatched(missing, StateColumns.keyText(layout.keyColumns, entry))
    if (after == 0) remove(entry) else put(entry, after)
    if (before <= 0 && after > 0) appears(row)
    else if (before > 0 && after <= 0) disappears(row)
    else null
  }

  private def ordinalOf(column: Attribute): Int = input.indexWhere(_.exprId == column.exprId)
}

/**
 * Rows of a group with one value of each kind, which only come. Where values are spread, a row has
 * that of its table, and the first of a change's rows stands for the group.
 *
 * @param input
 *   the columns of the rows handed in
 * @param forgets
 *   whether a group is forgotten when no row of it has come for long
 */
private[aggregate] final class SingleValues(
    layout: DistinctLayout,
    input: Seq[Attribute],
    store: StateStore,
    forgets: Boolean)
    extends DistinctValues(store) {
  private val keys = values(layout.key)
  private val appear = values(layout.asGroup(1L))
  private val group = only(-1, layout.asItIs)
  private val ordinals = layout.values.map(v => input.indexWhere(_.exprId == v.exprId)).toArray
  private val tableOrdinal = input.indexWhere(_.exprId == layout.table.exprId)

  /** Where nothing but values is computed, a group that has one was given a row before. */
  private val valuesSuffice = layout.buffers.isEmpty && !forgets

  override def changesPerRow: Int = 1 + ordinals.length

  override protected def changed(row: InternalRow, index: Int): InternalRow =
    if (index == 0) { if (isOfGroup(row)) group(row) else null }
    else if (row.isNullAt(ordinals(index - 1)) || !add(keys(index - 1)(row))) null
    else appear(index - 1)(row)

  private def isOfGroup(row: InternalRow): Boolean =
    (tableOrdinal < 0 || row.getInt(tableOrdinal) == layout.firstTable) &&
      !(valuesSuffice && hasValue(row))

  private def hasValue(row: InternalRow): Boolean = {
    var index = 0
    while (index < ordinals.length && row.isNullAt(ordinals(index))) index += 1
    index < ordinals.length
  }

  private def values(columns: Seq[Expression]): Array[UnsafeProjection] =
    layout.values.indices.map(only(_, columns)).toArray

  /** Columns of a row as if it had only the value of one kind, or none. */
  private def only(kind: Int, columns: Seq[Expression]): UnsafeProjection = {
    val others = AttributeSet(layout.values.patch(kind.max(0), Nil, if (kind < 0) 0 else 1))
    GenerateUnsafeProjection.generate(
      columns.map(_.transform {
        case column: Attribute if others.contains(column) => Literal(null, column.dataType)
        case column: Attribute if column.semanticEquals(layout.table) =>
          Literal(if (kind < 0) 0 else layout.firstTable + kind)
      }),
      input)
  }
}
