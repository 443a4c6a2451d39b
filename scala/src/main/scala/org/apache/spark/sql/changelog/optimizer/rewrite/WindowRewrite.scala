// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, WindowStack}
import org.apache.spark.sql.changelog.plans.{ChangelogConsolidate, ChangelogReplay}
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/**
 * Computes window functions anew for each partition that changes.
 * {{{
 *   Window [sum(v)] [g] [ts]    =>   ChangelogConsolidate [id, g, ts, v, sum]
 *   +- t  [I,UB,UA,D]                +- Window [sum(v)] [g, _row_kind] [ts]
 *                                       +- ChangelogReplay [g] [ts]
 *                                          +- t  [I,UB,UA,D]
 * }}}
 * Rows that are equal in the old and the new version cancel out. Where the consumer replaces rows
 * by a key, what is left is netted by that key too.
 *
 * Where a window's order leaves ties, the row that comes first must be the same in every batch,
 * or what is taken back is not what was given. So ties are settled by the rows' other columns: the
 * lowest window's by the replay, which gives rows out in that order, further ones' by a sort that
 * Spark finds sufficient.
 */
private[optimizer] object WindowRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan.isInstanceOf[Window]

  /** Windows over the same partitions share their rows. */
  override def inputs(node: AnnotatedPlan): Seq[AnnotatedPlan] = lowest(node).children

  private def lowest(node: AnnotatedPlan): AnnotatedPlan =
    if (WindowStack.sharesRows(node.plan)) lowest(node.children.head) else node

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val windows = WindowStack(node.plan)
    val partition = NodeRewrite.partitionColumns(windows.head.partitionSpec, inputs.head)
    val rows =
      Project(inputs.head.output ++ partition.collect { case made: Alias => made }, inputs.head)
    val replay = ChangelogReplay(
      partition.map(_.toAttribute),
      windows.head.orderSpec.filterNot(_.child.foldable),
      session = None,
      dropsLate = true,
      emitsClosed = false,
      RowKind.find(inputs.head.output),
      opening = None,
      RowKind.newAttribute(),
      ids.next(),
      if (rows.output == inputs.head.output) inputs.head else rows)
    val lowest = versioned(windows.head, replay, replay)
    val computed = windows.tail.foldLeft(lowest) { (below, window) =>
      versioned(window, replay, sorted(window, replay, below))
    }
    val result = NodeRewrite.select(computed, node.plan.output, withKind = true)
    val changed = ChangelogConsolidate(
      comparable(node.plan.output),
      pairs = false,
      replaces = false,
      RowKind.find(result.output).get,
      RowKind.newAttribute(),
      result)
    node.requiredKey match {
      case Some(key) if node.mode.updateKind == UpdateKind.OnlyUpdateAfter =>
        val byKey = ChangelogConsolidate(
          node.ordered(key),
          pairs = true,
          replaces = false,
          changed.outputKind,
          RowKind.newAttribute(),
          changed)
        NodeRewrite.sending(node.mode.updateKind, byKey)
      case _ => changed
    }
  }

  /** The window over both versions of each partition's rows. */
  private def versioned(window: Window, replay: ChangelogReplay, child: LogicalPlan): Window = {
    val partition = partitionOf(replay)
    val functions = window.windowExpressions.map(_.transform { case function: WindowExpression =>
      function.copy(windowSpec = function.windowSpec.copy(partitionSpec = partition))
    }.asInstanceOf[NamedExpression])
    window.copy(windowExpressions = functions, partitionSpec = partition, child = child)
  }

  /** Partitions as the replay knows them: by columns that are equal exactly if their bytes are. */
  private def partitionOf(replay: ChangelogReplay): Seq[Expression] =
    replay.partition :+ replay.outputKind

  private def sorted(window: Window, replay: ChangelogReplay, child: LogicalPlan): Sort = {
    val order = partitionOf(replay).map(SortOrder(_, Ascending)) ++ window.orderSpec
    val ties = comparable(child.output).map(SortOrder(_, Ascending))
    Sort(order ++ ties, global = false, child)
  }

  /** Maps can't be compared, but equal rows still meet where the other columns are equal. */
  private def comparable(columns: Seq[Attribute]): Seq[Attribute] =
    columns.filter(column => RowOrdering.isOrderable(column.dataType))
}
