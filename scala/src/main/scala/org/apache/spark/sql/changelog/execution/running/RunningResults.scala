// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.running

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

import org.apache.spark.sql.changelog.plans.{RunningBuffers, RunningFunctions}

/**
 * Computes running functions over one partition's rows after the other.
 *
 * @param input
 *   the columns of a row
 */
private[running] final class RunningResults(functions: RunningFunctions, input: Seq[Attribute]) {
  private val ofRows = new Buffers(functions.ofRows)
  private val ofPeers = new Buffers(functions.ofPeers)
  private val all = new JoinedRow(ofRows.values, ofPeers.values)
  private val resultOf =
    UnsafeProjection.create(input ++ functions.results, functions.buffers ++ input)
  private val withBuffers = new JoinedRow
  private val stateOf = UnsafeProjection.create(functions.buffers, functions.buffers)

  /** Goes on where a partition was left; null for one without any rows so far. */
  def start(stored: UnsafeRow): Unit = Seq(ofRows, ofPeers).foreach(_.start(stored))

  /** The rows with one time, each with its results. */
  def resultsOf(peers: Array[InternalRow]): Iterator[InternalRow] = {
    peers.foreach(ofPeers.add)
    peers.iterator.map { row =>
      ofRows.add(row)
      resultOf(withBuffers(all, row))
    }
  }

  /** What is to be kept of the partition. */
  def state: UnsafeRow = stateOf(all)

  private class Buffers(buffers: RunningBuffers) {
    import buffers.columns

    val values = new SpecificInternalRow(columns.map(_.dataType))
    private val initialize = MutableProjection.create(buffers.initial, Nil).target(values)
    private val restore = MutableProjection.create(columns, functions.buffers).target(values)
    private val update =
      MutableProjection.create(buffers.updates, columns ++ input).target(values)
    private val joined = new JoinedRow

    def start(stored: UnsafeRow): Unit =
      if (stored == null) initialize(InternalRow.empty) else restore(stored.copy())

    def add(row: InternalRow): Unit = update(joined(values, row))
  }
}
