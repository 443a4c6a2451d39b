// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  DeclarativeAggregate
}
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, RunningWindow}
import org.apache.spark.sql.changelog.plans._

/**
 * Computes running window functions as the watermark passes rows.
 * {{{
 *   Window [sum(v)] [g] [ts]    =>   ChangelogRunning [g] [sum(v)]
 *   +- t  [I]                        +- ChangelogReplay [ts, g]     rows, once they are passed
 *                                       +- Filter isnotnull(ts)
 *                                          +- t  [I]
 * }}}
 * A row without a time is passed by no watermark.
 */
private[optimizer] object RunningWindowRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan match {
    case RunningWindow(_) => node.mode.isInsertOnly
    case _ => false
  }

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val window = node.plan.asInstanceOf[Window]
    val RunningWindow(time) = window
    val partition = NodeRewrite.partitionColumns(window.partitionSpec, inputs.head)
    val made = partition.collect { case alias: Alias => alias }
    val timed = Filter(IsNotNull(time), inputs.head)
    val held = hold(partition.map(_.toAttribute), time, ids, window) {
      if (made.isEmpty) timed else Project(timed.output ++ made, timed)
    }
    Project(node.plan.output, compute(window, partition.map(_.toAttribute), time, ids, held))
  }

  /** The rows that the watermark has passed, each once. */
  private def hold(partition: Seq[Attribute], time: Attribute, ids: OperatorIds, window: Window)(
      rows: LogicalPlan): ChangelogReplay = ChangelogReplay(
    // the time first: it is what the watermark is compared with
    time +: partition.filterNot(_.exprId == time.exprId),
    Nil,
    session = None,
    dropsLate = true,
    emitsClosed = true,
    inputKind = None,
    opening = None,
    RowKind.newAttribute(),
    ids.next(),
    rows,
    placedBy = Some(partition))

  private def compute(
      window: Window,
      partition: Seq[Attribute],
      time: Attribute,
      ids: OperatorIds,
      held: LogicalPlan): ChangelogRunning = {
    val (ofPeers, ofRows) =
      window.windowExpressions.flatMap(RunningWindow.calls).partition(RunningWindow.seesPeers)
    val values =
      (ofRows ++ ofPeers).map(call => call -> Function(call).declared.evaluateExpression)
    ChangelogRunning(
      partition,
      time,
      RunningFunctions(
        buffers(ofRows),
        buffers(ofPeers),
        window.windowExpressions.map(_.transform { case call: WindowExpression =>
          values.collectFirst { case (known, value) if known.fastEquals(call) => value }.get
        }.asInstanceOf[NamedExpression])),
      ids.next(),
      held)
  }

  private def buffers(calls: Seq[WindowExpression]): RunningBuffers = {
    val functions = calls.map(Function(_))
    RunningBuffers(
      functions.flatMap(_.declared.aggBufferAttributes),
      functions.flatMap(_.declared.initialValues),
      functions.flatMap(_.updates))
  }

  private object Function {
    def apply(call: WindowExpression): Function = call.windowFunction match {
      case AggregateExpression(function: DeclarativeAggregate, _, _, filter, _) =>
        Function(function, filter)
      case function => Function(function.asInstanceOf[DeclarativeAggregate], None)
    }
  }

  private case class Function(declared: DeclarativeAggregate, filter: Option[Expression]) {
    def updates: Seq[Expression] = filter.fold(declared.updateExpressions) { condition =>
      declared.updateExpressions.zip(declared.aggBufferAttributes).map { case (update, before) =>
        If(condition, update, before)
      }
    }
  }
}
