// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StatefulOperatorCustomMetric, StatefulOperatorCustomSumMetric, StatefulOperatorStateInfo
}
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.{
  ChangeMetrics, OperatorWatermark, UnmatchedRetractions
}

/**
 * Computes the rows that a task of a [[ChangelogEmitOnCloseExec]] emits in a batch.
 *
 * @param timeOf
 *   returns the watermark from which a row is final
 * @param late
 *   the watermark, in ms, that makes rows late: the watermark of the previous batch
 * @param over
 *   the watermark, in ms, at and below which rows are emitted
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

  /** Returns the rows passed by the watermark. `changes` must be sorted in the operator's required order. */
  def apply(changes: Iterator[InternalRow]): Iterator[InternalRow] =
    netted(changes).flatMap { case (row, net) => change(row, net.count) } ++
      over.iterator.flatMap(rows.due).flatMap(passed)

  /** The first time at which a stored row is due, in ms. */
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
      // the count is negative after an unmatched retraction
      if (count != 0 && !isPassed) {
        rows.put(time, row, count, shown = false)
        metrics.updated += 1
      } else if (stored != null) {
        rows.remove(time, row)
        metrics.removed += 1
      }
      if (isPassed) emit(row, count) else Iterator.empty
  }

  /** Removes and returns the rows of a time. */
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

/**
 * Computes the watermark from which a row is final: the latest of its event times, plus delays, ignoring NULL.
 *
 * @param times
 *   event times of a row, each a timestamp
 * @param delays
 *   the delay added to each event time, in ms
 * @param columns
 *   the columns of a row
 */
private[time] final class CloseTimes(
    times: Seq[Expression],
    delays: Seq[Long],
    columns: Seq[Attribute]) {
  private val timesOf = UnsafeProjection.create(times, columns)
  private val addedMs = delays.toArray

  /** Returns the watermark in ms; [[CloseTimes.NoTime]] if each event time is NULL. */
  def apply(row: UnsafeRow): Long = {
    val times = timesOf(row)
    var latest = CloseTimes.NoTime
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
}

private[time] object CloseTimes {
  val NoTime: Long = Long.MinValue
}

/**
 * Keeps rows until the watermark passes them, and emits each row once.
 *
 * {{{
 *   watermark   in                        out
 *   12:00       +I a 12:05, +I b 12:20
 *   12:10       -U b 12:20, +U c 12:20    a 12:05
 *   12:30       +I d 12:10                c 12:20
 *   12:30                                           d is late, and counted
 * }}}
 *
 *   - in: any changes, those of equal rows together
 *   - out: inserts only
 *   - state: the rows not yet passed by the watermark, by time; see [[TimedRows]]. `shown` is false
 *   - law: the rows of the result passed by the watermark have been emitted, each once
 *
 * A row without a time is never passed. Such rows are counted and not stored. Spark also runs a batch without
 * input when the watermark passes the next row.
 *
 * @param times
 *   event times of a row, each a timestamp. The row's time is the latest, ignoring NULL
 * @param delays
 *   the delay added to each event time, in ms
 */
case class ChangelogEmitOnCloseExec(
    times: Seq[Expression],
    delays: Seq[Long],
    placedBy: Seq[Attribute],
    inputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends TimedRowsWriter {

  override def shortName: String = "changelogEmitOnClose"

  override def simpleString(maxFields: Int): String =
    s"$nodeName(${truncatedString(times, "[", ", ", "]", maxFields)}, " +
      s"delays=${truncatedString(delays, "[", ", ", "]", maxFields)}, " +
      s"placedBy=${truncatedString(placedBy, "[", ", ", "]", maxFields)})"

  override def columns: Seq[Attribute] =
    RowKind.without(Some(inputKind), child.output)

  override def output: Seq[Attribute] = columns

  override protected def customStatefulOperatorMetrics: Seq[StatefulOperatorCustomMetric] =
    super.customStatefulOperatorMetrics :+ StatefulOperatorCustomSumMetric(
      ChangelogEmitOnCloseExec.RowsWithoutTime,
      "number of rows dropped because the event time is NULL")

  /** Returns the watermark of the sources, because the times already include the delays of the operators below. */
  override protected def inputWatermark(origin: Long): Option[Long] =
    OperatorWatermark.ofSources(this, origin)

  override protected def closesMoreAt(watermark: Long): Boolean = nextTime.value <= watermark

  override protected def doExecute(): RDD[InternalRow] = {
    // available on the driver only
    val time = batchTime
    val next = nextTime
    executeWithStore(child.execute()) { (store, rows) =>
      val closed = new ClosedRows(
        netRows(Some(inputKind)),
        new CloseTimes(times, delays, columns),
        store,
        time.lateWatermark,
        time.evictionWatermark,
        changeMetrics,
        longMetric("numRowsDroppedByWatermark"),
        longMetric(ChangelogEmitOnCloseExec.RowsWithoutTime),
        unmatchedRetractions())
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        closed(rows),
        closed.next.foreach(next.add))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogEmitOnCloseExec =
    copy(child = newChild)
}

object ChangelogEmitOnCloseExec {
  val RowsWithoutTime = "numRowsWithoutTime"
}
