// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.{
  StatefulOperatorCustomMetric,
  StatefulOperatorCustomSumMetric,
  StatefulOperatorStateInfo
}
import org.apache.spark.util.{CompletionIterator, Utils}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo

/**
 * Takes back rows that nothing has changed for some time.
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
 *   - out: the same, but for those that take back what is gone; `-D` when a row leaves
 *   - state: all rows, by the time at which they came; see [[TimedRows]]
 *   - law: in the table are the rows that are in the input's, and have come since `rowTtl` before the
 *     batch. Of equal rows the one that came first goes first
 *
 * The time is that of the batch, the same if it is run again. A batch is also run when nothing arrives
 * and the next row is due.
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

  override def columns: Seq[Attribute] =
    RowKind.without(inputKind, child.output)

  override def output: Seq[Attribute] = columns :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override protected def customStatefulOperatorMetrics: Seq[StatefulOperatorCustomMetric] =
    super.customStatefulOperatorMetrics ++ Seq(
      StatefulOperatorCustomSumMetric(
        ChangelogTemporalFilterExec.RowsLeft,
        "number of rows that left as time passed"),
      StatefulOperatorCustomSumMetric(
        ChangelogRowTtlExec.RetractionsOfGone,
        "number of retractions of rows that had left before"))

  override protected def notesTimes: Boolean = true

  override protected def changesAt(time: Long): Boolean = nextTime.value <= time

  override protected def doExecute(): RDD[InternalRow] = {
    // known on the driver only
    val time = AssignStateInfo.timestamp(castToImpl(session))
    val next = nextTime
    executeWithStore(child.execute()) { (store, rows) =>
      val changes = new RowTtlChanges(
        netRows(inputKind),
        rowTtl,
        store,
        time,
        changeMetrics,
        longMetric(ChangelogTemporalFilterExec.RowsLeft),
        longMetric(ChangelogRowTtlExec.RetractionsOfGone))
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        changes(rows),
        changes.finish().foreach(next.add))
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogRowTtlExec =
    copy(child = newChild)
}

object ChangelogRowTtlExec {
  val RetractionsOfGone = "numRetractionsOfGoneRows"
}
