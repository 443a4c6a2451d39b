// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.util.LinkedHashMap

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.UnmatchedRetractions

/**
 * Rows kept by a key: `join key, key -> row`, or `join key -> row` where the join key holds one.
 *
 * A row is always replaced against the stored one, whatever the change says the old row was: what
 * comes in wins over what goes. What goes must be the stored row, so that an old row that comes
 * late takes nothing back; but where old rows are left out, going is by key.
 */
private[join] final class KeyedRows(
    layout: JoinLayout,
    side: JoinSideLayout,
    store: StateStore,
    unmatched: UnmatchedRetractions,
    metrics: JoinSideMetrics)
    extends JoinSideState(layout, side, store, unmatched, metrics) {

  /** The changes of one key, and what comes of them. */
  private final class Slot(val key: UnsafeRow) {
    val come = new mutable.ArrayBuffer[UnsafeRow](1)
    val gone = new mutable.ArrayBuffer[UnsafeRow](1)
    var change: RowChange = _
  }

  private val isSingle = side.rowKey.isEmpty
  private val keyOf = GenerateUnsafeProjection.generate(side.rowKey, side.columns)
  private var slots = new LinkedHashMap[UnsafeRow, Slot]
  private var isLarge = false
  // the one row of the join key
  private var storedRow: UnsafeRow = _
  private var storedMatches = 0L

  override protected def clear(): Unit = {
    // a cleared map stays as large as it was for the largest key
    if (isLarge) slots = new LinkedHashMap[UnsafeRow, Slot] else slots.clear()
    storedRow = null
    storedMatches = 0
  }

  override def add(row: UnsafeRow, retracts: Boolean): Unit = {
    val slot = slotOf(keyOf(row))
    if (retracts) cancel(slot.come, slot.gone, row)
    else cancel(slot.gone, slot.come, row)
  }

  override def numHeld: Int = slots.size

  override def holds(row: UnsafeRow): Boolean = slots.containsKey(keyOf(row))

  private def slotOf(key: UnsafeRow): Slot = {
    val known = slots.get(key)
    if (known != null) known
    else {
      val slot = new Slot(key.copy())
      slots.put(slot.key, slot)
      slot
    }
  }

  private def cancel(
      from: mutable.ArrayBuffer[UnsafeRow],
      to: mutable.ArrayBuffer[UnsafeRow],
      row: UnsafeRow): Unit = {
    val index = from.indexOf(row)
    if (index >= 0) from.remove(index) else to += row
  }

  override def load(): Unit = {
    if (isSingle) {
      val value = get(null)
      if (value != null) {
        storedRow = rowOf(value).copy() // the next record to be read may overwrite this one
        storedMatches = matchesOf(value)
      }
    }
    isLarge = slots.size > 64
    val all = slots.values.iterator
    while (all.hasNext) {
      val slot = all.next()
      val value = if (isSingle) null else get(slot.key)
      val before = if (value == null) storedRow else rowOf(value).copy()
      if (!load(slot, before)) all.remove()
      else slot.change.matchesBefore = if (value == null) storedMatches else matchesOf(value)
    }
  }

  /** Whether the slot's row changes. */
  private def load(slot: Slot, before: UnsafeRow): Boolean = {
    val wrong = slot.gone.count(row => if (side.replaces) before == null else row != before)
    if (wrong > 0) noteUnmatched(wrong)
    val after =
      if (slot.come.nonEmpty) slot.come.last
      else if (slot.gone.size > wrong) null
      else before
    val isChanged = before != after
    if (isChanged) {
      slot.change =
        new RowChange(before, after, if (before == null) 0 else 1, if (after == null) 0 else 1)
      changes += slot.change
    }
    isChanged
  }

  override def unchanged(): StoredRows =
    if (isSingle) new SingleRow
    else {
      new Scan {
        override protected def isWanted: Boolean =
          slots.isEmpty || !slots.containsKey(suffixRow)

        override def row: UnsafeRow = rowOf(value)

        override def copies: Long = 1

        override def saveMatches(matches: Long): Unit = put(suffixRow, row, 1, matches)
      }
    }

  override def save(): Unit = slots.values.forEach { slot =>
    val key = if (isSingle) null else slot.key
    if (slot.change.after == null) {
      remove(key)
      noteDropped()
    } else {
      put(key, slot.change.after, 1, slot.change.matchesAfter)
      if (slot.change.before == null) noteAdded()
    }
  }

  /** The one row of the join key, unless it changes. */
  private final class SingleRow extends StoredRows {
    private var isThere = storedRow != null && slots.isEmpty

    override def next(): Boolean = {
      val found = isThere
      isThere = false
      found
    }

    override def row: UnsafeRow = storedRow

    override def copies: Long = 1

    override def matches: Long = storedMatches

    override def saveMatches(matches: Long): Unit = put(null, row, 1, matches)

    override def close(): Unit = ()
  }
}
