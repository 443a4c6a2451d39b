// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.util.LinkedHashMap

import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.UnmatchedRetractions

/** Rows kept by a key: `join key, key -> row`. They are replaced as [[KeyedChange]] says. */
private[join] final class KeyedRows(
    layout: JoinLayout,
    side: JoinSideLayout,
    store: StateStore,
    unmatched: UnmatchedRetractions,
    metrics: JoinSideMetrics)
    extends JoinSideState(layout, side, store, unmatched, metrics) {

  /** The changes of one key, and what comes of them. */
  private final class Slot(val key: UnsafeRow) {
    val changed = new KeyedChange
    var change: RowChange = _
  }

  private val keyOf = UnsafeProjection.create(side.joined.rowKey, side.columns)
  private var slots = new LinkedHashMap[UnsafeRow, Slot]
  private var isLarge = false

  override protected def clear(): Unit =
    // a cleared map stays as large as it was for the largest key
    if (isLarge) slots = new LinkedHashMap[UnsafeRow, Slot] else slots.clear()

  override def add(row: UnsafeRow, retracts: Boolean): Unit =
    slotOf(keyOf(row)).changed.add(row, retracts)

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

  override def load(): Unit = {
    isLarge = slots.size > 64
    val all = slots.values.iterator
    while (all.hasNext) {
      val slot = all.next()
      val value = get(slot.key)
      // the next record to be read may overwrite this one
      val before = if (value == null) null else rowOf(value).copy()
      val wrong = slot.changed.unmatched(before, side.joined.replaces)
      noteUnmatched(wrong)
      val after = slot.changed.after(before, wrong)
      if (before == after) all.remove()
      else {
        slot.change = RowChange.ofOne(before, after)
        slot.change.matchesBefore = if (value == null) 0 else matchesOf(value)
        changes += slot.change
      }
    }
  }

  override def unchanged(): StoredRows = new Scan {
    override protected def isWanted: Boolean =
      slots.isEmpty || !slots.containsKey(suffixRow)

    override def row: UnsafeRow = rowOf(value)

    override def copies: Long = 1

    override def saveMatches(matches: Long): Unit = put(suffixRow, row, 1, matches)
  }

  override def save(): Unit = slots.values.forEach { slot =>
    if (slot.change.after == null) {
      remove(slot.key)
      noteDropped()
    } else {
      put(slot.key, slot.change.after, 1, slot.change.matchesAfter)
      if (slot.change.before == null) noteAdded()
    }
  }
}
