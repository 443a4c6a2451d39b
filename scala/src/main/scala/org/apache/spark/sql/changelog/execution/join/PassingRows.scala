// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.util.LinkedHashMap

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.UnmatchedRetractions

/** Rows that only come, and are of no interest after their batch: nothing is kept. */
private[join] final class PassingRows(
    layout: JoinLayout,
    side: JoinSideLayout,
    store: StateStore,
    unmatched: UnmatchedRetractions,
    metrics: JoinSideMetrics)
    extends JoinSideState(layout, side, store, unmatched, metrics) {
  private var counts = new LinkedHashMap[UnsafeRow, Long]

  override protected def clear(): Unit =
    // a cleared map stays as large as it was for the largest key
    if (counts.size > 64) counts = new LinkedHashMap[UnsafeRow, Long] else counts.clear()

  override def add(row: UnsafeRow, retracts: Boolean): Unit = {
    counts.merge(row, 1L, (a, b) => a + b)
    ()
  }

  override def numHeld: Int = counts.size

  override def holds(row: UnsafeRow): Boolean = counts.containsKey(row)

  override def load(): Unit = counts.forEach { (row, count) =>
    changes += new RowChange(null, row, 0, count)
  }

  override def unchanged(): StoredRows = NoRows

  override def save(): Unit = ()

  private object NoRows extends StoredRows {
    override def next(): Boolean = false

    override def row: UnsafeRow = throw new NoSuchElementException

    override def copies: Long = throw new NoSuchElementException

    override def matches: Long = throw new NoSuchElementException

    override def saveMatches(matches: Long): Unit = throw new NoSuchElementException

    override def close(): Unit = ()
  }
}
