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
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo

/**
 * Keeps the rows that meet conditions on the time, and emits those that come and go as it passes.
 *
 * {{{
 *   at > now() - INTERVAL 1 HOUR        in                 out
 *   12:00                               +I a 11:30         +I a 11:30
 *   12:15                               +I b 11:10
 *   12:30                                                  -D a 11:30
 * }}}
 *
 *   - in: any changes, those of equal rows together
 *   - out: `+I` when a row comes in, `-D` when it goes; changes of rows that are in, as they are
 *   - state: the rows that may come or go, by the next time at which they do; see [[TimedRows]]. A row
 *     that will never come is not kept, nor one that will never go
 *   - law: the rows that meet the conditions at the time of the batch are in the table
 *
 * The time is that of the batch, the same if it is run again. A batch is also run when nothing arrives
 * and the next row is due.
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

  override def columns: Seq[Attribute] =
    RowKind.without(inputKind, child.output)

  override def output: Seq[Attribute] = columns :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override protected def customStatefulOperatorMetrics: Seq[StatefulOperatorCustomMetric] =
    super.customStatefulOperatorMetrics ++ Seq(
      StatefulOperatorCustomSumMetric(
        ChangelogTemporalFilterExec.RowsCame,
        "number of rows that came as time passed"),
      StatefulOperatorCustomSumMetric(
        ChangelogTemporalFilterExec.RowsLeft,
        "number of rows that left as time passed"))

  override protected def changesAt(time: Long): Boolean = nextTime.value <= time

  override protected def doExecute(): RDD[InternalRow] = {
    // known on the driver only
    val time = AssignStateInfo.timestamp(castToImpl(session))
    val next = nextTime
    executeWithStore(child.execute()) { (store, rows) =>
      val changes = new TemporalFilterChanges(
        netRows(inputKind),
        RowTimes(conditions, columns),
        store,
        time,
        changeMetrics,
        longMetric(ChangelogTemporalFilterExec.RowsCame),
        longMetric(ChangelogTemporalFilterExec.RowsLeft),
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
  val RowsCame = "numRowsCame"
  val RowsLeft = "numRowsLeft"
}
