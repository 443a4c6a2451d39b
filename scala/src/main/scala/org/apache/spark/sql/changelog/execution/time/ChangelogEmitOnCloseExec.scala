// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StatefulOperatorCustomMetric,
  StatefulOperatorCustomSumMetric,
  StatefulOperatorStateInfo
}
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.OperatorWatermark

/**
 * Keeps rows until the watermark has passed them, and gives each then, once.
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
 *   - out: rows that only come
 *   - state: the rows that the watermark has not passed, by time; see [[TimedRows]]. No row is shown
 *   - law: the rows of the result that the watermark has passed have been given, each once
 *
 * A row without a time is never passed; it is counted and not kept. A batch is also run when nothing
 * arrives and the watermark has come to the next row.
 *
 * @param times
 *   event times of a row, each a timestamp. The row's time is the latest of those that are not NULL
 * @param delays
 *   what is added to each of them, in ms
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
      "number of rows that are not kept because their event time is NULL")

  /** Times are such that rows are final when the watermark of the sources has passed them. */
  override protected def inputWatermark(origin: Long): Option[Long] =
    OperatorWatermark.ofSources(this, origin)

  override protected def closesMoreAt(watermark: Long): Boolean = nextTime.value <= watermark

  override protected def doExecute(): RDD[InternalRow] = {
    // known on the driver only
    val time = batchTime
    val next = nextTime
    executeWithStore(child.execute()) { (store, rows) =>
      val closed = new ClosedRows(
        netRows(Some(inputKind)),
        new CloseTimes(times, delays, columns),
        store,
        time.lateWatermark,
        time.overWatermark,
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
