// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.state.{StateStore, UnsafeRowPair}

import org.apache.spark.sql.changelog.execution.{StateColumns, UnmatchedRetractions}

/** Counts the distinct values of a partition's groups, or stores the kinds of each value as bits. */
private[aggregate] abstract class DistinctValues(store: StateStore) {
  private val countRow = UnsafeRow.createFromByteArray(16, 1)
  countRow.setLong(0, 0L)

  /** The number of entries written for the last row. */
  var numWritten: Int = 0

  /** The number of entries removed for the last row. */
  var numRemoved: Int = 0

  /** Returns the row to emit for an input row; null if no value appears or disappears. */
  def change(row: InternalRow): InternalRow = {
    numWritten = 0
    numRemoved = 0
    changed(row)
  }

  protected def changed(row: InternalRow): InternalRow

  /** Adds kinds, as bits, to the entry of a value. Returns the bits of the new kinds. */
  protected def add(entry: UnsafeRow, kinds: Long): Long = {
    val before = count(entry)
    val added = kinds & ~before
    if (added != 0) put(entry, before | added)
    added
  }

  /** Returns the stored count of a value, or the bits of its kinds. */
  protected def count(entry: UnsafeRow): Long = {
    val stored = store.get(entry)
    if (stored == null) 0L else stored.getLong(0)
  }

  protected def put(entry: UnsafeRow, count: Long): Unit = {
    countRow.setLong(0, count)
    store.put(entry, countRow)
    numWritten += 1
  }

  protected def remove(entry: UnsafeRow): Unit = {
    store.remove(entry)
    numRemoved += 1
  }
}

/**
 * Processes combined input: rows of groups, and rows of values with a number of rows.
 *
 * @param input
 *   the columns of the input rows
 */
private[aggregate] final class CombinedValues(
    layout: DistinctLayout,
    input: Seq[Attribute],
    store: StateStore,
    unmatched: UnmatchedRetractions)
    extends DistinctValues(store) {
  private val key = UnsafeProjection.create(layout.key, input)
  private val appears = UnsafeProjection.create(layout.asGroup(1L), input)
  private val disappears = UnsafeProjection.create(layout.asGroup(-1L), input)
  private val unchanged = UnsafeProjection.create(layout.unchanged, input)

  private val bits = layout.bits.toArray
  private lazy val named = layout.grouping ++ layout.values
  private lazy val namedOf = UnsafeProjection.create(named, input)

  private val tableOrdinal = ordinalOf(layout.table)
  private val valueOrdinals = layout.values.map(ordinalOf).toArray
  private val countOrdinal = layout.count.map(ordinalOf).getOrElse(-1)

  override protected def changed(row: InternalRow): InternalRow = {
    val table = row.getInt(tableOrdinal)
    val kind = table - layout.firstTable
    if (kind < 0) unchanged(row)
    else if (row.isNullAt(valueOrdinals(kind))) null
    else if (countOrdinal >= 0) count(row, row.getLong(countOrdinal))
    else if (add(key(row), bits(kind)) != 0) appears(row)
    else null
  }

  private def count(row: InternalRow, delta: Long): InternalRow = if (delta == 0) null
  else {
    val entry = key(row)
    val before = count(entry)
    val after = before + delta
    unmatched.note(before, after, StateColumns.keyText(named, namedOf(row)))
    if (after == 0) remove(entry) else put(entry, after)
    if (before <= 0 && after > 0) appears(row)
    else if (before > 0 && after <= 0) disappears(row)
    else null
  }

  private def ordinalOf(column: Attribute): Int = input.indexWhere(_.exprId == column.exprId)
}

/**
 * Processes uncombined, insert-only input: rows of a group with a value of each kind. If values are spread, a
 * row has the value of its table, and the first of a change's rows also stands for the group.
 *
 * Emits a row with its new values.
 *
 * @param input
 *   the columns of the input rows
 * @param forgets
 *   whether the operator above expires groups by a TTL
 */
private[aggregate] final class SingleValues(
    layout: DistinctLayout,
    input: Seq[Attribute],
    store: StateStore,
    forgets: Boolean)
    extends DistinctValues(store) {
  private val shared = layout.shared.toArray
  private val bits = layout.bits.toArray
  private val keys = shared.indices.map(keyOf).toArray
  private val rowOfGroup = inTable(0, layout.unchanged)
  private val ordinals = layout.values.map(v => input.indexWhere(_.exprId == v.exprId)).toArray
  private val firstOrdinal = layout.output.indexWhere(_.exprId == layout.values.head.exprId)
  private val tableOrdinal = input.indexWhere(_.exprId == layout.table.exprId)

  /**
   * If the aggregate has nothing but distinct values, a stored value proves that the group's row was emitted
   * before.
   */
  private val valuesSuffice = layout.buffers.isEmpty && !forgets

  override protected def changed(row: InternalRow): InternalRow = {
    val result = rowOfGroup(row)
    var isEmitted = isOfGroup(row)
    var kind = 0
    while (kind < shared.length) {
      if (shared(kind) == kind && addShared(row, kind, result)) isEmitted = true
      kind += 1
    }
    if (isEmitted) result else null
  }

  /**
   * Adds a value shared by the kind `first` and later kinds. Sets the value to NULL in the result for the kinds
   * that had the value before. Returns whether the value is new for a kind.
   */
  private def addShared(row: InternalRow, first: Int, result: UnsafeRow): Boolean = {
    var there = 0L
    var kind = first
    while (kind < shared.length) {
      if (shared(kind) == first && !row.isNullAt(ordinals(kind))) there |= bits(kind)
      kind += 1
    }
    val added = if (there == 0) 0L else add(keys(first)(row), there)
    kind = first
    while (kind < shared.length) {
      if (shared(kind) == first && (added & bits(kind)) == 0)
        result.setNullAt(firstOrdinal + kind)
      kind += 1
    }
    added != 0
  }

  private def isOfGroup(row: InternalRow): Boolean =
    (tableOrdinal < 0 || row.getInt(tableOrdinal) == layout.firstTable) &&
      !(valuesSuffice && hasValue(row))

  private def hasValue(row: InternalRow): Boolean = {
    var index = 0
    while (index < ordinals.length && row.isNullAt(ordinals(index))) index += 1
    index < ordinals.length
  }

  /** Returns the projection to the key of the value that `first` shares with later kinds. */
  private def keyOf(first: Int): UnsafeProjection = {
    val others = AttributeSet(
      layout.values.zip(shared).collect { case (value, other) if other != first => value })
    inTable(
      layout.firstTable + first,
      layout.key.map(_.transform {
        case column: Attribute if others.contains(column) => Literal(null, column.dataType)
      }))
  }

  private def inTable(table: Int, columns: Seq[Expression]): UnsafeProjection =
    UnsafeProjection.create(
      columns.map(_.transform {
        case column: Attribute if column.semanticEquals(layout.table) => Literal(table)
      }),
      input)
}

/**
 * Moves entries shared by several kinds to another number of partitions. One old entry may become several, and
 * several old entries may become one:
 *
 * {{{
 *   partition 0   a 7 -> 11          partition 0   a 7 -> 01
 *             1              =>                1   a 7 -> 10
 *             2   b 7 -> 01                    2
 *             3   b 7 -> 10                    3   b 7 -> 11
 * }}}
 */
object MovedDistinctValues {

  /** Splits an entry into one entry per kind. */
  def byKind(entry: UnsafeRowPair): Seq[UnsafeRowPair] = {
    val kinds = entry.value.getLong(0)
    (0 until DistinctLayout.MaxShared).map(1L << _).filter(bit => (kinds & bit) != 0).map { bit =>
      val value = entry.value.copy()
      value.setLong(0, bit)
      new UnsafeRowPair(entry.key, value)
    }
  }

  /** Adds an entry of a kind to the entry in `store`. */
  def add(entry: UnsafeRowPair, store: StateStore): Unit = {
    val there = store.get(entry.key, StateStore.DEFAULT_COL_FAMILY_NAME)
    if (there != null) unite(entry.value, there)
    store.put(entry.key, entry.value, StateStore.DEFAULT_COL_FAMILY_NAME)
  }

  /** Sets `value` to the kinds of both entries and, if entries have a time, the later time. */
  private def unite(value: UnsafeRow, there: UnsafeRow): Unit = {
    value.setLong(0, value.getLong(0) | there.getLong(0))
    (1 until value.numFields).foreach { time =>
      value.setLong(time, math.max(value.getLong(time), there.getLong(time)))
    }
  }
}
