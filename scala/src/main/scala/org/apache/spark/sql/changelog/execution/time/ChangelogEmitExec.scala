// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.{
  ChangeMetrics, OperatorWatermark, UnmatchedRetractions
}
import org.apache.spark.sql.changelog.plans.Emission

/**
 * Computes the changes that a task of a [[ChangelogEmitExec]] emits in a batch.
 *
 * @param timeOf
 *   returns the time at which a row is due
 * @param late
 *   the time at and below which rows are late, if any
 * @param due
 *   the time at and below which rows are emitted, if any
 * @param retracts
 *   whether rows can be retracted after their emission
 */
private[time] final class HeldRows(
    netted: NetRows,
    timeOf: UnsafeRow => Long,
    rows: TimedRows,
    late: Option[Long],
    due: Option[Long],
    retracts: Boolean,
    metrics: ChangeMetrics,
    numLate: SQLMetric,
    numWithoutTime: SQLMetric,
    unmatched: UnmatchedRetractions) {
  import netted.columns

  private val emitRows = new EmitRows(columns, metrics)

  /** Returns the due changes. `changes` must be sorted in the operator's required order. */
  def apply(changes: Iterator[InternalRow]): Iterator[InternalRow] =
    netted(changes).flatMap(net => change(net.row, net.count)) ++
      due.iterator.flatMap(rows.due).flatMap(passed)

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
      if (!retracts) {
        unmatched.note(before, count, row.toSeq(columns.map(_.dataType)).mkString(", "))
      }
      val isPassed = due.exists(time <= _)
      // the count is negative after a retraction of an emitted, or of an unmatched row
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
    if (count > 0 || retracts) emitRows(row, count, RowKind.Insert, RowKind.Delete)
    else Iterator.empty
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
 * Holds changes, and emits the net changes when they are due.
 *
 * {{{
 *   on close
 *   watermark   in                        out
 *   12:00       +I a 12:05, +I b 12:20
 *   12:10       -U b 12:20, +U c 12:20    +I a 12:05
 *   12:30       +I d 12:10                +I c 12:20
 *   12:30                                                d is late, and counted
 * }}}
 *
 *   - in: any changes, those of equal rows together
 *   - out: inserts and deletes. On close without corrections, inserts only
 *   - state: the held rows, by the time at which they are due; see [[TimedRows]]. `shown` is false
 *   - law: on close, the rows of the result passed by the watermark have been emitted. With corrections, so have
 *     their changes. With an interval, the table is the result as of the last emission
 *
 * On close, a row is due when the watermark passes its event times. With corrections, the watermark of the query
 * is delayed by the time for corrections: rows are due that much earlier. A row without a time is never passed.
 * Such rows are counted and not stored.
 *
 * With an interval, all rows are due in the first batch, and in the first batch after the interval has passed since
 * the last emission. All tasks decide equally, by the time of the batch. A rerun of the batch sees the same time.
 *
 * Spark also runs a batch without input when the next row is due.
 */
case class ChangelogEmitExec(
    emission: Emission,
    times: Seq[Expression],
    delays: Seq[Long],
    inOneTask: Boolean,
    placedBy: Seq[Attribute],
    inputKind: Option[Attribute],
    outputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends TimedRowsWriter {

  override def shortName: String = "changelogEmit"

  override def simpleString(maxFields: Int): String =
    s"$nodeName($emission, ${truncatedString(times, "[", ", ", "]", maxFields)}, " +
      s"delays=${truncatedString(delays, "[", ", ", "]", maxFields)}, " +
      s"placedBy=${truncatedString(placedBy, "[", ", ", "]", maxFields)})"

  override protected def shuffledBy: Seq[Attribute] = if (inOneTask) Nil else placedBy

  override protected def counters: Seq[(String, String)] =
    super.counters :+
      ChangelogEmitExec.RowsWithoutTime -> "number of rows dropped because the event time is NULL"

  private def interval: Option[Long] = emission match {
    case Emission.Every(interval) => Some(interval)
    case _ => None
  }

  private def corrections: Long = emission match {
    case Emission.OnClose(corrections) => corrections
    case _ => 0L
  }

  /** Returns the watermark of the sources, because the times already include the delays of the operators below. */
  override protected def inputWatermark(origin: Long): Option[Long] =
    OperatorWatermark.ofSources(this, origin)

  override protected def closesMoreAt(watermark: Long): Boolean =
    interval.isEmpty && nextTime.value <= watermark

  override protected def changesAt(time: Long): Boolean =
    interval.isDefined && nextTime.value <= time

  override protected def doExecute(): RDD[InternalRow] = {
    // available on the driver only
    val time = batchTime
    val next = nextTime
    executeWithStore(child.execute()) { (store, changes) =>
      val rows = new TimedRows(columns, store)
      def held(timeOf: UnsafeRow => Long, late: Option[Long], due: Option[Long]) = new HeldRows(
        netRows(),
        timeOf,
        rows,
        late,
        due,
        retracts = emission != Emission.OnClose(0),
        changeMetrics,
        longMetric("numRowsDroppedByWatermark"),
        longMetric(ChangelogEmitExec.RowsWithoutTime),
        unmatchedRetractions())
      val emitted = interval match {
        case Some(interval) =>
          val isDue = rows.lastTime.forall(_ + interval <= time.timestamp)
          if (isDue) rows.setLastTime(time.timestamp)
          held(_ => ChangelogEmitExec.AtOnce, None, Option.when(isDue)(ChangelogEmitExec.AtOnce))
        case None =>
          held(
            new CloseTimes(times, delays.map(_ - corrections), columns)(_),
            time.lateWatermark.map(_ - corrections),
            time.evictionWatermark)
      }
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        emitted(changes),
        rows.next.foreach { due =>
          next.add(interval.fold(due)(rows.lastTime.get + _))
        })
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogEmitExec =
    copy(child = newChild)
}

object ChangelogEmitExec {
  val RowsWithoutTime = "numRowsWithoutTime"

  /** The time of all rows, if all are due at once. */
  private val AtOnce = 0L
}
