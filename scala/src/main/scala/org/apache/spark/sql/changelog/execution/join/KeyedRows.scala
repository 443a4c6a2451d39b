// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.util.{ArrayList, LinkedHashMap}

import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}

/** Stores rows by a key: `join key, key -> row`. [[KeyedChange]] decides how changes replace a row. */
private[join] final class KeyedRows(parts: JoinSideParts) extends JoinSideState(parts) {
  import parts.side

  /** The changes of a key, and the resulting change of the row. */
  private final class Slot(val key: UnsafeRow) {
    val changed = new KeyedChange
    var change: RowChange = _
  }

  private val keyOf = UnsafeProjection.create(side.joined.rowKey, side.columns)
  private var slots = new LinkedHashMap[UnsafeRow, Slot]
  private var isLarge = false

  override protected def clear(): Unit =
    // a cleared map keeps the capacity of the largest join key
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
      // reading the next record may overwrite this record
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

/** Stores a single row per join key: `join key -> row`. [[KeyedChange]] decides how changes replace the row. */
private[join] final class OneRow(parts: JoinSideParts) extends JoinSideState(parts) {
  import parts.side
  private val changed = new KeyedChange
  private var isHeld = false
  private var stored: UnsafeRow = _
  private var storedMatches = 0L
  // null if the row does not change
  private var change: RowChange = _

  override protected def clear(): Unit = {
    changed.clear()
    isHeld = false
    change = null
  }

  override def add(row: UnsafeRow, retracts: Boolean): Unit = {
    isHeld = true
    changed.add(row, retracts)
  }

  override def numHeld: Int = if (isHeld) 1 else 0

  override def holds(row: UnsafeRow): Boolean = isHeld

  override def load(): Unit = {
    val value = get(null)
    // reading the next record may overwrite this record
    stored = if (value == null) null else rowOf(value).copy()
    storedMatches = if (value == null) 0 else matchesOf(value)
    if (isHeld) {
      val wrong = changed.unmatched(stored, side.joined.replaces)
      noteUnmatched(wrong)
      val after = changed.after(stored, wrong)
      if (stored != after) {
        change = RowChange.ofOne(stored, after)
        change.matchesBefore = storedMatches
        changes += change
      }
    }
  }

  override def unchanged(): StoredRows = new StoredRows {
    private var isThere = stored != null && change == null

    override def next(): Boolean = {
      val found = isThere
      isThere = false
      found
    }

    override def row: UnsafeRow = stored

    override def copies: Long = 1

    override def matches: Long = storedMatches

    override def saveMatches(matches: Long): Unit = put(null, row, 1, matches)

    override def close(): Unit = ()
  }

  override def save(): Unit = if (change != null) {
    if (change.after == null) {
      remove(null)
      noteDropped()
    } else {
      put(null, change.after, 1, change.matchesAfter)
      if (change.before == null) noteAdded()
    }
  }
}

/**
 * The changes of the row of a key in a batch.
 *
 * An insert or after image replaces the stored row, whatever the before image was. A retraction applies only if
 * its row equals the stored row, so that a late before image removes nothing. If the input has no before
 * images, a retraction applies by key.
 */
private[join] final class KeyedChange {
  private val come = new ArrayList[UnsafeRow](1)
  private val gone = new ArrayList[UnsafeRow](1)

  def clear(): Unit = {
    come.clear()
    gone.clear()
  }

  /** Adds a change, which may cancel out an earlier change. Keeps a reference to `row`. */
  def add(row: UnsafeRow, retracts: Boolean): Unit = {
    val (from, to) = if (retracts) (come, gone) else (gone, come)
    if (!from.remove(row)) {
      to.add(row)
      ()
    }
  }

  /** Returns the number of unmatched retractions. */
  def unmatched(before: UnsafeRow, replaces: Boolean): Int = {
    var count, index = 0
    while (index < gone.size) {
      if (if (replaces) before == null else gone.get(index) != before) count += 1
      index += 1
    }
    count
  }

  /**
   * Returns the row after the batch, the same object as `before` without an effective change; null if the row
   * no longer exists.
   *
   * @param unmatched
   *   the number of unmatched retractions
   */
  def after(before: UnsafeRow, unmatched: Int): UnsafeRow =
    if (!come.isEmpty) come.get(come.size - 1)
    else if (gone.size > unmatched) null
    else before
}
