// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.state.{StateStore, UnsafeRowPair}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.{ChangeMetrics, UnmatchedRetractions}

/**
 * The changes of one task's rows in a batch: those that its input brings, then those that time does.
 *
 * @param times
 *   when a row may come and go
 * @param batchTime
 *   what time it is in the batch, in ms. A clock that is set back stands still here until then
 */
private[time] final class TemporalFilterChanges(
    netted: NetRows,
    times: RowTimes,
    store: StateStore,
    batchTime: Long,
    metrics: ChangeMetrics,
    numCame: SQLMetric,
    numLeft: SQLMetric,
    unmatched: UnmatchedRetractions) {
  import RowTimes._
  import netted.columns

  private val emit = new EmitRows(columns, metrics)
  private val rows = new TimedRows(columns, store)

  private val lastTime = rows.lastTime
  private val now = math.max(batchTime, lastTime.getOrElse(0L))
  private val before = lastTime.getOrElse(now)

  /** All changes that are emitted, given those of the input in the order of the operator's distribution. */
  def apply(changes: Iterator[InternalRow]): Iterator[InternalRow] =
    netted(changes).flatMap { case (row, net) => arrived(row, net) } ++
      pass(rows.at(Unsettled)) ++
      rows.due(now).flatMap(time => pass(rows.at(time)))

  /** Takes note of the time. Gives when there is something to do again, in ms, if there is. */
  def finish(): Option[Long] = {
    if (!lastTime.contains(now)) rows.setLastTime(now)
    val unsettled = rows.at(Unsettled)
    val look =
      try if (unsettled.hasNext) Some((now / Minute + 1) * Minute) else None
      finally unsettled.close()
    (rows.next ++ look).minOption
  }

  private def arrived(row: UnsafeRow, net: NetRow): Iterator[InternalRow] = {
    times.find(row)
    times.place(before) match {
      case Gone => Iterator.empty
      case Stays => emit(row, net.count, net.comes, net.goes)
      case place => change(row, place, net)
    }
  }

  private def change(row: UnsafeRow, place: Long, net: NetRow): Iterator[InternalRow] = {
    val stored = rows.get(place, row)
    val isStored = stored != null
    val countBefore = if (isStored) stored.getLong(0) else 0L
    val wasShown = isStored && stored.getBoolean(1)
    val count = countBefore + net.count
    unmatched.note(countBefore, count, row.toSeq(columns.map(_.dataType)).mkString(", "))
    val shown = times.isShown(row, now)
    val next = times.place(now)
    move(row, place, isStored, next, count, shown)
    val difference = timesGiven(next, count, shown) - timesGiven(place, countBefore, wasShown)
    if (isStored && wasShown != shown) emit(row, difference, RowKind.Insert, RowKind.Delete)
    else emit(row, difference, net.comes, net.goes)
  }

  /** What time does to rows that are kept in one place. */
  private def pass(entries: Iterator[UnsafeRowPair]): Iterator[InternalRow] =
    entries.flatMap { entry =>
      val place = TimedRows.placeOf(entry.key)
      val row = rows.rowOf(entry)
      val (count, wasShown) = (entry.value.getLong(0), entry.value.getBoolean(1))
      times.find(row)
      val shown = times.isShown(row, now)
      val next = times.place(now)
      if (next != place || shown != wasShown) move(row, place, true, next, count, shown)
      val difference = timesGiven(next, count, shown) - timesGiven(place, count, wasShown)
      if (difference != 0) (if (shown) numCame else numLeft) += math.abs(difference)
      emit(row, difference, RowKind.Insert, RowKind.Delete)
    }

  /**
   * How often the operator has given a row. The count is below 0 if the row is taken back before it comes, and it
   * is not given then. One that is not kept any more since it stays for ever passes, as its next changes do.
   */
  private def timesGiven(place: Long, count: Long, shown: Boolean): Long =
    if (!shown) 0L else if (isKept(place)) math.max(0L, count) else count

  private def move(
      row: UnsafeRow,
      from: Long,
      isStored: Boolean,
      to: Long,
      count: Long,
      shown: Boolean): Unit = {
    val stays = isKept(to) && count != 0
    if (isStored && !(stays && from == to)) {
      rows.remove(from, row)
      metrics.removed += 1
    }
    if (stays) {
      rows.put(to, row, count, shown)
      metrics.updated += 1
    }
  }

  private val Minute = 60000L
}
