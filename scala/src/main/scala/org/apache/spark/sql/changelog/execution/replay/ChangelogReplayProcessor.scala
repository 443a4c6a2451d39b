// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import java.util.{Arrays, Comparator, LinkedHashMap}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.LongType

import org.apache.spark.sql.changelog.execution.{
  DistinctRows, RowOrder, SignedRows, UnmatchedRetractions
}

/** A row with its number of copies before and after the batch. */
private[replay] final class ReplayedRow(val row: UnsafeRow, var before: Long) {
  var after: Long = before

  /** The number of visible copies; 0 after an unmatched retraction. */
  def timesBefore: Long = math.max(0L, before)

  def timesAfter: Long = math.max(0L, after)
}

/**
 * Applies a batch's changes to the rows of each partition.
 *
 * @param order
 *   the order of rows; rows that compare as equal are ordered by their bytes
 * @param describe
 *   returns the text of a row for errors
 * @param refreshes
 *   whether all rows of a touched partition are written, and not only changed rows
 */
private[replay] class ChangelogReplayProcessor(
    state: PartitionRows,
    order: Comparator[InternalRow],
    unmatched: UnmatchedRetractions,
    describe: UnsafeRow => String,
    refreshes: Boolean = false) {
  private val changes = new SignedRows

  private val total = RowOrder.total(order)
  private val byRow: Comparator[ReplayedRow] = (left, right) => total.compare(left.row, right.row)

  /** Adds a change of a row in the current partition. */
  def add(row: UnsafeRow, sign: Long): Unit = changes(row).count += sign

  /**
   * Writes the state of the current partition and ends the partition.
   *
   * @param isRead
   *   whether the caller needs the rows
   * @return
   *   all rows of the partition in order, or none without a visible change
   */
  def end(isRead: Boolean = true): Array[ReplayedRow] = {
    val rows =
      if (isRead && changes.left.hasNext) applyChanges()
      else {
        writeChanges()
        ChangelogReplayProcessor.NoRows
      }
    changes.clear()
    rows
  }

  /** Writes the changes without reading the partition's other rows. */
  private def writeChanges(): Unit =
    changes.left.foreach { net =>
      val changed = new ReplayedRow(net.row, state.count(net.row))
      changed.after += net.count
      unmatched.note(changed.before, changed.after, describe(net.row))
      state.update(net.row, changed.after)
    }

  private def applyChanges(): Array[ReplayedRow] = {
    val rows = new LinkedHashMap[UnsafeRow, ReplayedRow]
    state.foreachOfPartition(changes.left.next().row) { (row, count) =>
      rows.put(row, new ReplayedRow(row, count))
    }
    var isSeen = false
    changes.left.foreach { net =>
      val changed = rows.computeIfAbsent(net.row, new ReplayedRow(_, 0))
      changed.after += net.count
      isSeen ||= changed.timesBefore != changed.timesAfter
      unmatched.note(changed.before, changed.after, describe(net.row))
    }
    rows.values.forEach { row =>
      if (refreshes || row.before != row.after) state.update(row.row, row.after)
    }
    if (!isSeen) ChangelogReplayProcessor.NoRows else sorted(rows)
  }

  private def sorted(rows: LinkedHashMap[UnsafeRow, ReplayedRow]): Array[ReplayedRow] = {
    val result = rows.values.toArray(ChangelogReplayProcessor.NoRows)
    Arrays.sort(result, byRow)
    result
  }
}

private object ChangelogReplayProcessor {
  private val NoRows = Array.empty[ReplayedRow]
}

/** Stores the rows of partitions, each with its count. */
private[replay] trait PartitionRows {

  /** Visits all rows of the partition of `row`. `visit` may keep the rows. */
  def foreachOfPartition(row: UnsafeRow)(visit: (UnsafeRow, Long) => Unit): Unit

  /** Returns the number of copies of `row`. */
  def count(row: UnsafeRow): Long

  /** Stores `row` with a count. A count of 0 removes the row. */
  def update(row: UnsafeRow, count: Long): Unit
}

/** Stores rows in a state store, in the columns of [[ReplayLayout]]. */
private[replay] class ReplayStateManager(layout: ReplayLayout, store: StateStore)
    extends PartitionRows {
  private val prefixOf =
    UnsafeProjection.create(layout.key.take(layout.numPrefixColumns), layout.key)
  private val countRow = new SpecificInternalRow(Seq(LongType))
  private val valueOf = UnsafeProjection.create(layout.valueSchema)

  var numUpdated: Long = 0
  var numRemoved: Long = 0

  override def foreachOfPartition(row: UnsafeRow)(visit: (UnsafeRow, Long) => Unit): Unit =
    foreachIn(prefixOf(row))(visit)

  /** Visits all rows of an element of [[partitions]]. */
  def foreachIn(prefix: UnsafeRow)(visit: (UnsafeRow, Long) => Unit): Unit = {
    val entries = store.prefixScan(prefix)
    try entries.foreach(entry => visit(entry.key.copy(), entry.value.getLong(0)))
    finally entries.close()
  }

  /** Returns the partitions with rows, each as the common prefix of its rows' keys. */
  def partitions: Array[UnsafeRow] = DistinctRows(
    store.iterator().filter(entry => layout.isRow(entry.key)).map(entry => prefixOf(entry.key)))

  override def count(row: UnsafeRow): Long = {
    val value = store.get(row)
    if (value == null) 0L else value.getLong(0)
  }

  override def update(row: UnsafeRow, count: Long): Unit =
    if (count == 0) {
      store.remove(row)
      numRemoved += 1
    } else {
      countRow.setLong(0, count)
      store.put(row, valueOf(countRow))
      numUpdated += 1
    }

  private lazy val keyOfVersion = UnsafeProjection
    .create(layout.keyOfVersion)
    .apply(InternalRow.empty)

  /** Whether a version of the only partition was emitted. */
  def hasVersion: Boolean = store.get(keyOfVersion) != null

  def setHasVersion(): Unit = {
    countRow.setLong(0, 1)
    store.put(keyOfVersion, valueOf(countRow))
  }
}
