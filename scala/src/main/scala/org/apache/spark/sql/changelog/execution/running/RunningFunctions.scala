// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.running

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

/** The functions of a [[ChangelogRunningExec]], over one partition's rows after the other. */
private[running] final class RunningFunctions(operator: ChangelogRunningExec) {
  import operator.{buffers, child, initial, results, updates}

  /** Those that see one row after the other, and those that see all rows with one time at once. */
  private val (ofRows, ofPeers) = {
    val (rowBuffers, peerBuffers) = buffers.splitAt(operator.numRowBuffers)
    val (rowInitial, peerInitial) = initial.splitAt(operator.numRowBuffers)
    val (rowUpdates, peerUpdates) = updates.splitAt(operator.numRowBuffers)
    (
      new Buffers(rowBuffers, rowInitial, rowUpdates),
      new Buffers(peerBuffers, peerInitial, peerUpdates))
  }
  private val all = new JoinedRow(ofRows.values, ofPeers.values)
  private val resultOf =
    UnsafeProjection.create(child.output ++ results, buffers ++ child.output)
  private val withBuffers = new JoinedRow
  private val stateOf = UnsafeProjection.create(buffers, buffers)

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

  private class Buffers(
      columns: Seq[Attribute],
      initial: Seq[Expression],
      updates: Seq[Expression]) {
    val values = new SpecificInternalRow(columns.map(_.dataType))
    private val initialize = MutableProjection.create(initial, Nil).target(values)
    private val restore = MutableProjection.create(columns, buffers).target(values)
    private val update = MutableProjection.create(updates, columns ++ child.output).target(values)
    private val joined = new JoinedRow

    def start(stored: UnsafeRow): Unit =
      if (stored == null) initialize(InternalRow.empty) else restore(stored.copy())

    def add(row: InternalRow): Unit = update(joined(values, row))
  }
}
