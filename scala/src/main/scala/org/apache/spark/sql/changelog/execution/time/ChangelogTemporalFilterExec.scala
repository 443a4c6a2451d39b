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
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.{ChangeMetrics, SignedRow, UnmatchedRetractions}
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo

/**
 * Keeps the rows that meet conditions on the current time, and emits changes as time passes.
 *
 * {{{
 *   at > now() - INTERVAL 1 HOUR        in                 out
 *   12:00                               +I a 11:30         +I a 11:30
 *   12:15                               +I b 11:10
 *   12:30                                                  -D a 11:30
 * }}}
 *
 *   - in: any changes, those of equal rows together
 *   - out: `+I` for a row that starts to meet the conditions, `-D` for a row that stops; changes of visible
 *     rows unchanged
 *   - state: the rows that may appear or disappear, by the next time at which they may; see [[TimedRows]]. A
 *     row that will never appear is not stored, nor a row that will never disappear
 *   - law: the table has the rows that meet the conditions at the time of the batch
 *
 * The time is the batch's time. A rerun of the batch sees the same time. Spark also runs a batch without input
 * when the next row may change.
 */
case class ChangelogTemporalFilterExec(
    conditions: Seq[Expression],
    placedBy: Seq[Attribute],
    inputKind: Option[Attribute],
    outputKind: Attribute,
    stateInfo: Option[StatefulOperatorStateInfo],
    child: SparkPlan)
    extends TimedRowsWriter {

  override def shortName: String = "changelogTemporalFilter"

  override def simpleString(maxFields: Int): String =
    s"$nodeName(${truncatedString(conditions, "[", ", ", "]", maxFields)}, " +
      s"placedBy=${truncatedString(placedBy, "[", ", ", "]", maxFields)})"

  override protected def counters: Seq[(String, String)] =
    super.counters ++ Seq(
      ChangelogTemporalFilterExec.RowsAppeared -> "number of rows that appeared as time passed",
      ChangelogTemporalFilterExec.RowsExpired -> "number of rows that disappeared as time passed")

  override protected def changesAt(time: Long): Boolean = nextTime.value <= time

  override protected def doExecute(): RDD[InternalRow] = {
    // available on the driver only
    val time = AssignStateInfo.timestamp(castToImpl(session))
    val next = nextTime
    executeWithStore(child.execute()) { (store, rows) =>
      val changes = new TemporalFilterChanges(
        netRows(),
        RowTimes(conditions, columns),
        store,
        time,
        changeMetrics,
        longMetric(ChangelogTemporalFilterExec.RowsAppeared),
        longMetric(ChangelogTemporalFilterExec.RowsExpired),
        unmatchedRetractions())
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        changes(rows),
        changes.finish().foreach(next.add))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogTemporalFilterExec =
    copy(child = newChild)
}

object ChangelogTemporalFilterExec {
  val RowsAppeared = "numRowsAppeared"
  val RowsExpired = "numRowsExpired"
}

/**
 * Computes the changes of a task's rows in a batch: the changes of the input, then the changes as time passes.
 *
 * @param times
 *   the times at which a row may appear and disappear
 * @param batchTime
 *   the time of the batch, in ms. If the clock was set back, time stands still here until the clock catches up
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

  /** Returns the changes to emit. `changes` must be sorted in the operator's required order. */
  def apply(changes: Iterator[InternalRow]): Iterator[InternalRow] =
    netted(changes).flatMap(net => arrived(net.row, net)) ++
      pass(rows.at(Recheck)) ++
      rows.due(now).flatMap(time => pass(rows.at(time)))

  /** Stores the time of the batch. Returns the next time with work, in ms. */
  def finish(): Option[Long] = {
    if (!lastTime.contains(now)) rows.setLastTime(now)
    val rechecked = rows.at(Recheck)
    val recheckTime =
      try if (rechecked.hasNext) Some((now / Minute + 1) * Minute) else None
      finally rechecked.close()
    (rows.next ++ recheckTime).minOption
  }

  private def arrived(row: UnsafeRow, net: SignedRow): Iterator[InternalRow] = {
    times.find(row)
    times.nextTransition(before) match {
      case Expired => Iterator.empty
      case Permanent => emit(row, net.count, net.insertKind, net.retractionKind)
      case place => change(row, place, net)
    }
  }

  private def change(row: UnsafeRow, place: Long, net: SignedRow): Iterator[InternalRow] = {
    val stored = rows.get(place, row)
    val isStored = stored != null
    val countBefore = if (isStored) stored.getLong(0) else 0L
    val wasShown = isStored && stored.getBoolean(1)
    val count = countBefore + net.count
    unmatched.note(countBefore, count, row.toSeq(columns.map(_.dataType)).mkString(", "))
    val shown = times.isShown(row, now)
    val next = times.nextTransition(now)
    move(row, place, isStored, next, count, shown)
    val difference = timesGiven(next, count, shown) - timesGiven(place, countBefore, wasShown)
    if (isStored && wasShown != shown) emit(row, difference, RowKind.Insert, RowKind.Delete)
    else emit(row, difference, net.insertKind, net.retractionKind)
  }

  /** Applies the passing of time to rows with an equal deadline. */
  private def pass(entries: Iterator[UnsafeRowPair]): Iterator[InternalRow] =
    entries.flatMap { entry =>
      val place = TimedRows.placeOf(entry.key)
      val row = rows.rowOf(entry)
      val (count, wasShown) = (entry.value.getLong(0), entry.value.getBoolean(1))
      times.find(row)
      val shown = times.isShown(row, now)
      val next = times.nextTransition(now)
      if (next != place || shown != wasShown) move(row, place, true, next, count, shown)
      val difference = timesGiven(next, count, shown) - timesGiven(place, count, wasShown)
      if (difference != 0) (if (shown) numCame else numLeft) += math.abs(difference)
      emit(row, difference, RowKind.Insert, RowKind.Delete)
    }

  /**
   * Returns the number of emitted copies of a row. An unmatched retraction makes the count negative, and no
   * copy is emitted. A permanently visible row is not stored. Its changes pass unchanged, so its count may be
   * negative.
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
