// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.running

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.execution.{GroupedIterator, SparkPlan}
import org.apache.spark.sql.types.{IntegerType, StructType}
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.execution.expiry.EntryTimes
import org.apache.spark.sql.changelog.execution.{
  RowOrder, StateColumns, UnaryChangelogStateWriter
}
import org.apache.spark.sql.changelog.plans.{RunningBuffers, RunningFunctions}

/**
 * Computes running functions: over all rows of a partition up to each row.
 *
 * {{{
 *   state       in                          out, sum by rows and by times
 *   a 10, 10    a 12:01 1, a 12:02 2        a 12:01 1 11 11
 *               a 12:02 3                   a 12:02 2 13 16, a 12:02 3 16 16
 * }}}
 *
 *   - in: rows later than every row of the batches before, sorted by partition and time
 *   - out: each row, with its results
 *   - state: the buffers of the functions, by partition. Without partition columns, the key is a constant
 *   - law: a row's results are over the rows of its partition up to the row itself, or up to the last row with
 *     an equal time, by each function's frame
 *
 * Rows with equal times are in the order of their columns. The rows of a partition with an equal time are held
 * in memory.
 */
case class ChangelogRunningExec(
    partition: Seq[Attribute],
    time: Attribute,
    functions: RunningFunctions,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends UnaryChangelogStateWriter {

  override def shortName: String = "changelogRunning"

  override def simpleString(maxFields: Int): String = {
    val results = truncatedString(functions.results, "[", ", ", "]", maxFields)
    s"$nodeName(partition=${truncatedString(partition, "[", ", ", "]", maxFields)}, " +
      s"time=$time, functions=$results)"
  }

  override def output: Seq[Attribute] = child.output ++ functions.results.map(_.toAttribute)

  override def producedAttributes: AttributeSet =
    AttributeSet(functions.buffers ++ functions.results.map(_.toAttribute))

  override def placedBy: Seq[Attribute] = partition

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = {
    val others = child.output.filterNot(column => partition.exists(_.exprId == column.exprId))
    Seq(
      partition.map(SortOrder(_, Ascending)) ++
        RowOrder(Seq(SortOrder(time, Ascending)), others))
  }

  override def timedColumns: Seq[Attribute] = partition

  private val keyColumns: Seq[Attribute] =
    if (partition.isEmpty) Seq(AttributeReference("table", IntegerType, nullable = false)())
    else partition

  override def stateKeySchema: StructType = StateColumns.ofKey(keyColumns)

  override def stateValueSchema: StructType =
    StateColumns(functions.buffers.map(buffer => buffer.name -> buffer.dataType))

  override protected def entryTimes: Option[EntryTimes] = timesOfKey(keyColumns)

  override protected def processPartition(
      store: StateStore,
      rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val running = new RunningResults(functions, child.output)
    val keyOf =
      UnsafeProjection.create(if (partition.isEmpty) Seq(Literal(0)) else partition, child.output)
    val metrics = changeMetrics
    val computed = GroupedIterator(rows, partition, child.output).flatMap { case (_, group) =>
      val ofGroup = group.buffered
      val key = keyOf(ofGroup.head).copy()
      running.start(store.get(key))
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        GroupedIterator(ofGroup, Seq(time), child.output).flatMap { case (_, peers) =>
          running.resultsOf(peers.map(_.copy()).toArray)
        }, {
          store.put(key, running.state)
          metrics.updated += 1
        })
    }
    CompletionIterator[InternalRow, Iterator[InternalRow]](
      computed.map { row =>
        metrics.emitted += 1
        row
      },
      removeExpired(store))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogRunningExec =
    copy(child = newChild)
}

/**
 * Computes running functions over the rows of each partition.
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

  /** Continues a partition from its stored buffers; null for a new partition. */
  def start(stored: UnsafeRow): Unit = Seq(ofRows, ofPeers).foreach(_.start(stored))

  /** Returns rows with equal times, each with its results. */
  def resultsOf(peers: Array[InternalRow]): Iterator[InternalRow] = {
    peers.foreach(ofPeers.add)
    peers.iterator.map { row =>
      ofRows.add(row)
      resultOf(withBuffers(all, row))
    }
  }

  /** The new state of the partition. */
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
