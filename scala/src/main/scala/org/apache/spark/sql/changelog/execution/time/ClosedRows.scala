// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.{ChangeMetrics, UnmatchedRetractions}

/**
 * What one task of a [[ChangelogEmitOnCloseExec]] gives in a batch.
 *
 * @param timeOf
 *   from which watermark on a row is final
 * @param late
 *   the watermark, in ms, at and below which a change comes too late: that of the batch before
 * @param over
 *   the watermark, in ms, at and below which rows are given
 */
private[time] final class ClosedRows(
    netted: NetRows,
    timeOf: CloseTimes,
    store: StateStore,
    late: Option[Long],
    over: Option[Long],
    metrics: ChangeMetrics,
    numLate: SQLMetric,
    numWithoutTime: SQLMetric,
    unmatched: UnmatchedRetractions) {
  import netted.columns

  private val rows = new TimedRows(columns, store)

  /** The rows that the watermark has passed, given the changes, ordered as the operator asks for. */
  def apply(changes: Iterator[InternalRow]): Iterator[InternalRow] =
    netted(changes).flatMap { case (row, net) => change(row, net.count) } ++
      over.iterator.flatMap(rows.due).flatMap(passed)

  /** The first time at which a row that is kept is to be given, in ms. */
  def next: Option[Long] = rows.next

  private def change(row: UnsafeRow, difference: Long): Iterator[InternalRow] = timeOf(
    row) match {
    case CloseTimes.NoTime =>
      numWithoutTime += math.max(0L, difference)
      Iterator.empty
    case time if late.exists(time <= _) =>
      numLate += math.abs(difference)
      Iterator.empty
    case time =>
      val stored = rows.get(time, row)
      val before = if (stored == null) 0L else stored.getLong(0)
      val count = before + difference
      unmatched.note(before, count, row.toSeq(columns.map(_.dataType)).mkString(", "))
      val isPassed = over.exists(time <= _)
      // below 0 if the row is taken back before it comes
      if (count != 0 && !isPassed) {
        rows.put(time, row, count, shown = false)
        metrics.updated += 1
      } else if (stored != null) {
        rows.remove(time, row)
        metrics.removed += 1
      }
      if (isPassed) emit(row, count) else Iterator.empty
  }

  /** The rows of a time, which are no longer kept. */
  private def passed(time: Long): Iterator[InternalRow] = rows.at(time).flatMap { entry =>
    val row = rows.rowOf(entry)
    val count = entry.value.getLong(0)
    rows.remove(time, row)
    metrics.removed += 1
    emit(row, count)
  }

  private def emit(row: UnsafeRow, count: Long): Iterator[InternalRow] =
    (0L until count).iterator.map { _ =>
      metrics.emitted += 1
      row.copy()
    }
}
