// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.util.ArrayList

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * What a batch does to the one row of a key.
 *
 * A row is always replaced against the stored one, whatever the change says the old row was: what
 * comes in wins over what goes. What goes must be the stored row, so that an old row that comes
 * late takes nothing back; but where old rows are left out, going is by key.
 */
private[join] final class KeyedChange {
  private val come = new ArrayList[UnsafeRow](1)
  private val gone = new ArrayList[UnsafeRow](1)

  def clear(): Unit = {
    come.clear()
    gone.clear()
  }

  /** Takes note of a change, which may cancel out another; `row` is kept. */
  def add(row: UnsafeRow, retracts: Boolean): Unit = {
    val (from, to) = if (retracts) (come, gone) else (gone, come)
    if (!from.remove(row)) {
      to.add(row)
      ()
    }
  }

  /** How many rows go that were not there. */
  def unmatched(before: UnsafeRow, replaces: Boolean): Int = {
    var count, index = 0
    while (index < gone.size) {
      if (if (replaces) before == null else gone.get(index) != before) count += 1
      index += 1
    }
    count
  }

  /**
   * The row after the batch, the same object as `before` if nothing comes or goes; null if there is
   * none.
   *
   * @param unmatched
   *   how many rows go that were not there
   */
  def after(before: UnsafeRow, unmatched: Int): UnsafeRow =
    if (!come.isEmpty) come.get(come.size - 1)
    else if (gone.size > unmatched) null
    else before
}
