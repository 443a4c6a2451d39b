// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.multi

import scala.collection.mutable

import org.apache.spark.sql.changelog.execution.join.{JoinSideState, RowChange, StoredRows}

/**
 * Goes through the rows of one input and join key, again and again, each as it was before the batch
 * and as it is after.
 *
 * Rows that do not change are read from state once and held, up to `atOnce` of them. Where there
 * are more, they are read again each time.
 */
private[multi] final class MultiJoinRows(state: JoinSideState, atOnce: Int) {
  private val held = new mutable.ArrayBuffer[RowChange]
  private var isRead = false
  private var isHeld = false

  private var withUnchanged = false
  private var index = 0
  private var numChanges = 0
  private var stored: StoredRows = _

  /** The row at hand. */
  var current: RowChange = _

  /** Goes to another join key, of which the state has all changes. */
  def begin(): Unit = {
    held.clear()
    isRead = false
    stored = null
  }

  def hasChanges: Boolean = state.changes.nonEmpty

  /** Whether no row was there before the batch nor is after it. */
  def isEmpty: Boolean = !hasChanges && !hasUnchanged

  private def hasUnchanged: Boolean = {
    read()
    held.nonEmpty
  }

  private def read(): Unit = if (!isRead) {
    isRead = true
    val rows = state.unchanged()
    try {
      isHeld = false
      while (!isHeld && held.size < atOnce) {
        if (rows.next()) held += unchanged(rows) else isHeld = true
      }
      if (!isHeld) isHeld = !rows.next()
    } finally rows.close()
  }

  /** A row that stays. Of a store's rows only one can be at hand, of all inputs. */
  private def unchanged(rows: StoredRows): RowChange = {
    val row = rows.row.copy()
    new RowChange(row, row, rows.copies, rows.copies)
  }

  /** Starts anew, with the rows that change, those that do not, or both. */
  def start(changes: Boolean, unchanged: Boolean): Unit = {
    withUnchanged = unchanged
    numChanges = if (changes) state.changes.size else 0
    index = 0
    if (unchanged) read()
  }

  /** Goes to the next row; false if there is none. */
  def next(): Boolean =
    if (index < numChanges) {
      current = state.changes(index)
      index += 1
      true
    } else withUnchanged && nextUnchanged()

  private def nextUnchanged(): Boolean =
    if (isHeld) {
      val at = index - numChanges
      val found = at < held.size
      if (found) {
        current = held(at)
        index += 1
      }
      found
    } else {
      if (stored == null) stored = state.unchanged()
      val found = stored.next()
      if (found) current = unchanged(stored)
      else {
        stored.close()
        stored = null
        withUnchanged = false
      }
      found
    }
}
