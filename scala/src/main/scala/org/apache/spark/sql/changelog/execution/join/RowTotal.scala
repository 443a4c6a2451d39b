// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.UnmatchedRetractions

/** No rows, only how many there are: `join key -> count`. */
private[join] final class RowTotal(
    layout: JoinLayout,
    side: JoinSideLayout,
    store: StateStore,
    unmatched: UnmatchedRetractions,
    metrics: JoinSideMetrics)
    extends JoinSideState(layout, side, store, unmatched, metrics) {
  private var countBefore = 0L
  private var delta = 0L
  private var isStored = false

  override protected def clear(): Unit = delta = 0

  override def add(row: UnsafeRow, retracts: Boolean): Unit = delta += (if (retracts) -1 else 1)

  override def numHeld: Int = 0

  override def holds(row: UnsafeRow): Boolean = true

  override def load(): Unit = {
    val value = get(null)
    isStored = value != null
    countBefore = if (isStored) countOf(value) else 0
    totalBefore = math.max(0L, countBefore)
    totalAfter = math.max(0L, countBefore + delta)
    noteUnmatched(UnmatchedRetractions.count(countBefore, countBefore + delta))
  }

  override def unchanged(): StoredRows =
    throw new UnsupportedOperationException("only the number of rows is kept")

  override def save(): Unit =
    if (delta != 0) {
      if (countBefore + delta == 0) {
        remove(null)
        noteDropped()
      } else {
        put(null, null, countBefore + delta, matches = 0)
        if (!isStored) noteAdded()
      }
    }
}
