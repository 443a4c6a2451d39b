// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{StateStore, UnsafeRowPair}
import org.apache.spark.util.{CompletionIterator, Utils}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.{ChangeMetrics, SignedRow}
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo

/**
 * Retracts rows that have not changed for the row TTL.
 *
 * {{{
 *   3 days        in                 out
 *   Monday        +I a 1, +I b 2     +I a 1, +I b 2
 *   Tuesday       -U b 2, +U b 3     -U b 2, +U b 3
 *   Thursday                         -D a 1
 *   Friday        -D a 1             -D b 3
 * }}}
 *
 *   - in: any changes, those of equal rows together
 *   - out: the input without retractions of expired rows; `-D` for a row that expires
 *   - state: all rows, by arrival time; see [[TimedRows]]
 *   - law: the table has the input's rows that arrived at most `rowTtl` before the batch. Of equal rows, the
 *     first to arrive expires first
 *
 * The time is the batch's time. A rerun of the batch sees the same time. Spark also runs a batch without input
 * when the next row expires.
 *
 * @param rowTtl
 *   in ms
 */
case class ChangelogRowTtlExec(
    rowTtl: Long,
    placedBy: Seq[Attribute],
    inputKind: Option[Attribute],
    outputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends TimedRowsWriter {

  override def shortName: String = "changelogRowTtl"

  override def simpleString(maxFields: Int): String =
    s"$nodeName(${Utils.msDurationToString(rowTtl)}, " +
      s"placedBy=${truncatedString(placedBy, "[", ", ", "]", maxFields)})"

  override protected def counters: Seq[(String, String)] =
    super.counters ++ Seq(
      ChangelogTemporalFilterExec.RowsExpired -> "number of rows deleted by the row TTL",
      ChangelogRowTtlExec.RetractionsOfExpired -> "number of retractions of rows deleted earlier")

  override protected def storesTimes: Boolean = true

  override protected def changesAt(time: Long): Boolean = nextTime.value <= time

  override protected def doExecute(): RDD[InternalRow] = {
    // available on the driver only
    val time = AssignStateInfo.timestamp(castToImpl(session))
    val next = nextTime
    executeWithStore(child.execute()) { (store, rows) =>
      val changes = new RowTtlChanges(
        netRows(),
        rowTtl,
        store,
        time,
        changeMetrics,
        longMetric(ChangelogTemporalFilterExec.RowsExpired),
        longMetric(ChangelogRowTtlExec.RetractionsOfExpired))
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        changes(rows),
        changes.finish().foreach(next.add))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogRowTtlExec =
    copy(child = newChild)
}

object ChangelogRowTtlExec {
  val RetractionsOfExpired = "numRetractionsOfExpiredRows"
}

/**
 * Computes the changes of a task's rows in a batch: the changes of the input, then the rows that expire.
 *
 * @param rowTtl
 *   in ms
 * @param batchTime
 *   the time of the batch, in ms. If the clock was set back, time stands still here until the clock catches up
 */
private[time] final class RowTtlChanges(
    netted: NetRows,
    rowTtl: Long,
    store: StateStore,
    batchTime: Long,
    metrics: ChangeMetrics,
    numLeft: SQLMetric,
    numOfGone: SQLMetric) {
  private val emit = new EmitRows(netted.columns, metrics)
  private val rows = new TimedRows(netted.columns, store)

  private val lastTime = rows.lastTime
  private val now = math.max(batchTime, lastTime.getOrElse(0L))

  /** Whether rows expire in this batch. */
  private val someLeave = rows.next.exists(_ <= now - rowTtl)

  /** Returns the changes to emit. `changes` must be sorted in the operator's required order. */
  def apply(changes: Iterator[InternalRow]): Iterator[InternalRow] =
    netted(changes).flatMap { net =>
      if (net.count > 0) insert(net.row, net) else retract(net.row, net)
    } ++ rows.due(now - rowTtl).flatMap(time => expire(time, rows.at(time)))

  /** Stores the time of the batch. Returns the time at which the next row expires, in ms. */
  def finish(): Option[Long] = {
    if (!lastTime.contains(now)) rows.setLastTime(now)
    rows.next.map(_ + rowTtl)
  }

  private def insert(row: UnsafeRow, net: SignedRow): Iterator[InternalRow] = {
    // an expired and a new copy of a row in the same batch cancel out
    val left = expire(row)
    add(row, now, net.count)
    emit(row, net.count - left, net.insertKind, RowKind.Delete)
  }

  private def retract(row: UnsafeRow, net: SignedRow): Iterator[InternalRow] = {
    // expires rows first, as an earlier batch would have done
    val left = expire(row)
    val gone = remove(row, -net.count, until = now)
    numOfGone += -net.count - gone
    emit(row, -left - gone, net.insertKind, net.retractionKind)
  }

  /** Expires the old copies of a row and returns their number. */
  private def expire(row: UnsafeRow): Long = {
    val left = if (someLeave) remove(row, Long.MaxValue, until = now - rowTtl) else 0L
    numLeft += left
    left
  }

  /**
   * Removes up to `most` copies of a row that arrived at or before `until`, oldest first. Returns the number of
   * removed copies.
   */
  private def remove(row: UnsafeRow, most: Long, until: Long): Long = {
    var removed = 0L
    rows.timesLike(row).iterator.takeWhile(time => time <= until && removed < most).foreach {
      time =>
        val stored = rows.get(time, row)
        // another row may have the same hash
        if (stored != null) {
          val count = math.min(stored.getLong(0), most - removed)
          add(row, time, -count)
          removed += count
        }
    }
    removed
  }

  /** Expires the rows of a time. */
  private def expire(time: Long, entries: Iterator[UnsafeRowPair]): Iterator[InternalRow] =
    entries.flatMap { entry =>
      val row = rows.rowOf(entry)
      val count = entry.value.getLong(0)
      add(row, time, -count)
      numLeft += count
      emit(row, -count, RowKind.Insert, RowKind.Delete)
    }

  /** Adds `more` to the stored number of copies of a row with an arrival time. */
  private def add(row: UnsafeRow, time: Long, more: Long): Unit = {
    val stored = rows.get(time, row)
    val before = if (stored == null) 0L else stored.getLong(0)
    val count = before + more
    if (count > 0) {
      rows.put(time, row, count, shown = true)
      metrics.updated += 1
    } else {
      rows.remove(time, row)
      metrics.removed += 1
    }
    if (before == 0) rows.countTime(row, time, 1)
    if (count == 0) rows.countTime(row, time, -1)
  }
}
