// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.{StateColumns, UnmatchedRetractions}

/** Counts the values of one partition's groups, or notes of which kinds they are there. */
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

  /** Notes that a value is there of some kinds, a bit each, and tells which of them are new. */
  protected def add(entry: UnsafeRow, kinds: Long): Long = {
    val before = count(entry)
    val added = kinds & ~before
    if (added != 0) put(entry, before | added)
    added
  }

  /** The count of a value before, or its kinds. */
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

  private val bits = layout.bits.toArray
  private lazy val named = layout.grouping ++ layout.values
  private lazy val namedOf = GenerateUnsafeProjection.generate(named, input)

  private val tableOrdinal = ordinalOf(layout.table)
  private val valueOrdinals = layout.values.map(ordinalOf).toArray
  private val countOrdinal = layout.count.map(ordinalOf).getOrElse(-1)

  override def changesPerRow: Int = 1

  override protected def changed(row: InternalRow, index: Int): InternalRow = {
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
    val missing = math.max(0L, -after) - math.max(0L, -before)
    if (missing > 0) unmatched(missing, StateColumns.keyText(named, namedOf(row)))
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
  private val shared = layout.shared.toArray
  private val bits = layout.bits.toArray
  // none for a kind that shares another's
  private val keys = shared.indices
    .map(first => shared.indices.filter(shared(_) == first))
    .map(kinds => if (kinds.isEmpty) null else only(kinds, layout.key))
    .toArray
  private val appear =
    layout.values.indices.map(kind => only(Seq(kind), layout.asGroup(1L))).toArray
  private val group = only(Nil, layout.asItIs)
  private val isNew = new Array[Boolean](shared.length)
  private val ordinals = layout.values.map(v => input.indexWhere(_.exprId == v.exprId)).toArray
  private val tableOrdinal = input.indexWhere(_.exprId == layout.table.exprId)

  /** Where nothing but values is computed, a group that has one was given a row before. */
  private val valuesSuffice = layout.buffers.isEmpty && !forgets

  override def changesPerRow: Int = 1 + ordinals.length

  override protected def changed(row: InternalRow, index: Int): InternalRow =
    if (index == 0) { if (isOfGroup(row)) group(row) else null }
    else {
      val kind = index - 1
      if (shared(kind) == kind) addShared(row, kind)
      if (isNew(kind)) appear(kind)(row) else null
    }

  /** Adds the value that a kind shares with those that follow. */
  private def addShared(row: InternalRow, first: Int): Unit = {
    var there = 0L
    var kind = first
    while (kind < shared.length) {
      if (shared(kind) == first && !row.isNullAt(ordinals(kind))) there |= bits(kind)
      kind += 1
    }
    val added = if (there == 0) 0L else add(keys(first)(row), there)
    kind = first
    while (kind < shared.length) {
      if (shared(kind) == first) isNew(kind) = (added & bits(kind)) != 0
      kind += 1
    }
  }

  private def isOfGroup(row: InternalRow): Boolean =
    (tableOrdinal < 0 || row.getInt(tableOrdinal) == layout.firstTable) &&
      !(valuesSuffice && hasValue(row))

  private def hasValue(row: InternalRow): Boolean = {
    var index = 0
    while (index < ordinals.length && row.isNullAt(ordinals(index))) index += 1
    index < ordinals.length
  }

  /** Columns of a row as if it had only the values of some kinds, or none. */
  private def only(kinds: Seq[Int], columns: Seq[Expression]): UnsafeProjection = {
    val others = AttributeSet(layout.values.indices.diff(kinds).map(layout.values))
    val table = kinds.headOption.map(layout.firstTable + _).getOrElse(0)
    GenerateUnsafeProjection.generate(
      columns.map(_.transform {
        case column: Attribute if others.contains(column) => Literal(null, column.dataType)
        case column: Attribute if column.semanticEquals(layout.table) => Literal(table)
      }),
      input)
  }
}
