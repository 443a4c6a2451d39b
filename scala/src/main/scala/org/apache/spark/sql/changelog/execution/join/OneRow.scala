// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.UnmatchedRetractions

/** Of each join key one row: `join key -> row`. It is replaced as [[KeyedChange]] says. */
private[join] final class OneRow(
    layout: JoinLayout,
    side: JoinSideLayout,
    store: StateStore,
    unmatched: UnmatchedRetractions,
    metrics: JoinSideMetrics)
    extends JoinSideState(layout, side, store, unmatched, metrics) {
  private val changed = new KeyedChange
  private var isHeld = false
  private var stored: UnsafeRow = _
  private var storedMatches = 0L
  // none if the row stays as it is
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
    // the next record to be read may overwrite this one
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
