// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.UnmatchedRetractions

/**
 * What one task of a [[ChangelogEmitOnCloseExec]] gives in a batch.
 *
 * @param late
 *   the watermark, in ms, at and below which a change comes too late: that of the batch before
 * @param over
 *   the watermark, in ms, at and below which rows are given
 */
private[time] final class ClosedRows(
    operator: ChangelogEmitOnCloseExec,
    store: StateStore,
    late: Option[Long],
    over: Option[Long],
    unmatched: UnmatchedRetractions) {
  import ClosedRows.NoTime
  import operator.{delays, output}

  private val netted =
    new NetRows(output, Some(operator.inputKind), operator.placedBy, operator.child.output)
  private val timesOf = UnsafeProjection.create(operator.times, output)
  private val addedMs = delays.toArray
  private val rows = new TimedRows(output, store)

  private val numOutputRows = operator.longMetric("numOutputRows")
  private val numUpdated = operator.longMetric("numUpdatedStateRows")
  private val numRemoved = operator.longMetric("numRemovedStateRows")
  private val numLate = operator.longMetric("numRowsDroppedByWatermark")
  private val numWithoutTime = operator.longMetric(ChangelogEmitOnCloseExec.RowsWithoutTime)

  /** The rows that the watermark has passed, given the changes, ordered as the operator asks for. */
  def apply(changes: Iterator[InternalRow]): Iterator[InternalRow] =
    netted(changes).flatMap { case (row, net) => change(row, net.count) } ++
      over.iterator.flatMap(rows.due).flatMap(passed)

  /** The first time at which a row that is kept is to be given, in ms. */
  def next: Option[Long] = rows.next

  private def change(row: UnsafeRow, difference: Long): Iterator[InternalRow] = timeOf(
    row) match {
    case NoTime =>
      numWithoutTime += math.max(0L, difference)
      Iterator.empty
    case time if late.exists(time <= _) =>
      numLate += math.abs(difference)
      Iterator.empty
    case time =>
      val stored = rows.get(time, row)
      val count = (if (stored == null) 0L else stored.getLong(0)) + difference
      if (count < 0) unmatched(-count, row.toSeq(output.map(_.dataType)).mkString(", "))
      val isPassed = over.exists(time <= _)
      if (count > 0 && !isPassed) {
        rows.put(time, row, count, shown = false)
        numUpdated += 1
      } else if (stored != null) {
        rows.remove(time, row)
        numRemoved += 1
      }
      if (isPassed) emit(row, count) else Iterator.empty
  }

  /** The rows of a time, which are no longer kept. */
  private def passed(time: Long): Iterator[InternalRow] = rows.at(time).flatMap { entry =>
    val row = rows.rowOf(entry)
    val count = entry.value.getLong(0)
    rows.remove(time, row)
    numRemoved += 1
    emit(row, count)
  }

  /** From which watermark on a row is final, in ms. */
  private def timeOf(row: UnsafeRow): Long = {
    val times = timesOf(row)
    var latest = NoTime
    var index = 0
    while (index < addedMs.length) {
      if (!times.isNullAt(index)) {
        val time = addedMs(index) - Math.floorDiv(-times.getLong(index), 1000L)
        latest = math.max(latest, math.max(0L, math.min(time, TimedRows.LastTime)))
      }
      index += 1
    }
    latest
  }

  private def emit(row: UnsafeRow, count: Long): Iterator[InternalRow] =
    (0L until count).iterator.map { _ =>
      numOutputRows += 1
      row.copy()
    }
}

private object ClosedRows {
  private val NoTime = Long.MinValue
}
