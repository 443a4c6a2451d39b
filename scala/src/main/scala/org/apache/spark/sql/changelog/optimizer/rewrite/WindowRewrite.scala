// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression, DeclarativeAggregate
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.{BooleanType, IntegerType}

import org.apache.spark.sql.changelog.inference.{
  AnnotatedPlan, BoundedWindow, RunningWindow, WindowStack
}
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/**
 * Recomputes window functions for each changed partition.
 *
 * {{{
 *   Window [sum(v)] [g] [ts]    =>   ChangelogConsolidate [id, g, ts, v, sum]
 *   +- t  [I,UB,UA,D]                +- Window [sum(v)] [g, _row_kind] [ts]
 *                                       +- ChangelogReplay [g] [ts]
 *                                          +- t  [I,UB,UA,D]
 * }}}
 *
 * Functions over rows up to a fixed distance are computed for the rows around changed rows only: a
 * `ChangelogNeighbors` takes the place of the `ChangelogReplay`, and numbers the contiguous parts.
 *
 * Rows that are equal in both versions cancel out. If the consumer replaces rows by a key, the
 * remaining changes are netted by the key too.
 *
 * Ties in a window's order must break equally in every batch, or a retraction would not equal the
 * emitted row. The remaining columns therefore break ties. For the lowest window, the replay
 * emits rows in this order. For higher windows, a sort establishes the order, and Spark accepts
 * the sort as sufficient.
 */
private[optimizer] object WindowRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan.isInstanceOf[Window]

  /** Windows over equal partitions share their rows. */
  override def inputs(node: AnnotatedPlan): Seq[AnnotatedPlan] = lowest(node).children

  private def lowest(node: AnnotatedPlan): AnnotatedPlan =
    if (WindowStack.sharesRows(node.plan)) lowest(node.children.head) else node

  override def apply(context: RewriteContext): LogicalPlan = {
    import context.{ids, input, node}
    val windows = WindowStack(node.plan)
    val partition = NodeRewrite.partitionColumns(windows.head.partitionSpec, input)
    val rows =
      Project(input.output ++ partition.collect { case made: Alias => made }, input)
    val stored = if (rows.output == input.output) input else rows
    val order = windows.head.orderSpec.filterNot(_.child.foldable)
    val computed = windows match {
      case Seq(window @ BoundedWindow(reach)) =>
        val neighbors = ChangelogNeighbors(
          partition.map(_.toAttribute),
          order,
          reach,
          context.inputKind,
          AttributeReference("_segment", IntegerType, nullable = false)(),
          RowKind.newAttribute(),
          ids.next(),
          stored)
        val by = neighbors.partition :+ neighbors.segment :+ neighbors.outputKind
        versioned(window, by, neighbors)
      case _ =>
        val replay = ChangelogReplay(
          partition.map(_.toAttribute),
          order,
          context.inputKind,
          RowKind.newAttribute(),
          ids.next(),
          stored)
        val by = replay.partition :+ replay.outputKind
        windows.tail.foldLeft(versioned(windows.head, by, replay)) { (below, window) =>
          versioned(window, by, sorted(window, by, below))
        }
    }
    val result = NodeRewrite.select(computed, node.plan.output, withKind = true)
    val changed = ChangelogConsolidate.byRow(node.plan.output, result)
    node.requiredKey match {
      case Some(key) if node.mode.updateKind == UpdateKind.OnlyUpdateAfter =>
        val byKey = ChangelogConsolidate.byKey(node.ordered(key), changed)
        NodeRewrite.sending(node.mode.updateKind, byKey)
      case _ => changed
    }
  }

  /**
   * Returns the window over both versions of each partition's rows.
   *
   * @param partition
   *   the columns of a version of a partition, with equal bytes for equal values
   */
  private def versioned(window: Window, partition: Seq[Attribute], child: LogicalPlan): Window = {
    val functions = window.windowExpressions.map(_.transform { case function: WindowExpression =>
      function.copy(windowSpec = function.windowSpec.copy(partitionSpec = partition))
    }.asInstanceOf[NamedExpression])
    window.copy(windowExpressions = functions, partitionSpec = partition, child = child)
  }

  private def sorted(window: Window, partition: Seq[Attribute], child: LogicalPlan): Sort = {
    val order = partition.map(SortOrder(_, Ascending)) ++ window.orderSpec
    val ties = ChangelogConsolidate.comparable(child.output).map(SortOrder(_, Ascending))
    Sort(order ++ ties, global = false, child)
  }
}

/**
 * Computes running window functions when the watermark passes rows.
 *
 * {{{
 *   Window [sum(v)] [g] [ts]    =>   ChangelogRunning [g] [sum(v)]
 *   +- t  [I]                        +- ChangelogReplay [ts, g]     rows, once they are passed
 *                                       +- Filter isnotnull(ts)
 *                                          +- t  [I]
 * }}}
 *
 * The watermark never passes a row with a NULL time.
 */
private[optimizer] object RunningWindowRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan match {
    case RunningWindow(_) => node.mode.isInsertOnly
    case _ => false
  }

  override def apply(context: RewriteContext): LogicalPlan = {
    import context.{ids, input, node}
    val window = node.plan.asInstanceOf[Window]
    val RunningWindow(time) = window
    val partition = NodeRewrite.partitionColumns(window.partitionSpec, input)
    val made = partition.collect { case alias: Alias => alias }
    val timed = Filter(IsNotNull(time), input)
    val held = hold(partition.map(_.toAttribute), time, ids, window) {
      if (made.isEmpty) timed else Project(timed.output ++ made, timed)
    }
    Project(node.plan.output, compute(window, partition.map(_.toAttribute), time, ids, held))
  }

  /** Returns the rows passed by the watermark, each once. */
  private def hold(partition: Seq[Attribute], time: Attribute, ids: OperatorIds, window: Window)(
      rows: LogicalPlan): ChangelogReplay = ChangelogReplay(
    // The time comes first, for the comparison with the watermark.
    time +: partition.filterNot(_.exprId == time.exprId),
    order = Nil,
    inputKind = None,
    RowKind.newAttribute(),
    ids.next(),
    rows,
    emitsClosed = true,
    placedBy = Some(partition))

  private def compute(
      window: Window,
      partition: Seq[Attribute],
      time: Attribute,
      ids: OperatorIds,
      held: LogicalPlan): ChangelogRunning = {
    val (ofPeers, ofRows) =
      window.windowExpressions.flatMap(RunningWindow.calls).partition(RunningWindow.readsPeers)
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

/**
 * Runs a recursive query again if an input changes.
 *
 * {{{
 *   RecursiveQuery                   ChangelogConsolidate
 *   :- a  [I,UB,UA,D]         =>     +- ChangelogRecursion
 *   +- b  [I]                           +- ChangelogReplay
 *                                          +- Union           each row with the number of its input
 *                                             :- a
 *                                             +- b
 * }}}
 *
 * A version opens with a row outside all inputs: the recursion may have rows even if every input
 * is empty.
 */
private[optimizer] object RecursionRewrite extends RewriteOf[RecursiveQuery] {

  override protected def rewrite(query: RecursiveQuery, context: RewriteContext): LogicalPlan = {
    val rows = numbered(query.inputs, context.inputs)
    val replay = ChangelogReplay(
      partition = Nil,
      order = Nil,
      RowKind.find(rows.output),
      RowKind.newAttribute(),
      context.ids.next(),
      rows,
      opening = Some(AttributeReference("_opening", BooleanType, nullable = false)()))
    // Columns follow the number of the input.
    val starts = query.inputs.scanLeft(1)(_ + _.output.size)
    val places = query.inputs.zip(starts).map { case (input, start) =>
      input.output.indices.map(start + _)
    }
    val computed = ChangelogRecursion(query.loop, places, RowKind.newAttribute(), replay)
    ChangelogConsolidate.byRow(query.output, computed)
  }

  /**
   * Returns the rows of all inputs. Each row has the number of its input, and NULL in the columns
   * of other inputs.
   */
  private def numbered(inputs: Seq[LogicalPlan], changes: Seq[LogicalPlan]): LogicalPlan = {
    val rows = inputs.indices.map { number =>
      val columns = inputs.zipWithIndex.flatMap { case (input, index) =>
        input.output.map { column =>
          val value = if (index == number) column else Literal(null, column.dataType)
          Alias(value, column.name)()
        }
      }
      val kind = RowKind.find(changes(number).output).getOrElse(Literal(RowKind.Insert))
      val input = Alias(Literal(number), "input")()
      Project((input +: columns) :+ Alias(kind, RowKind.ColumnName)(), changes(number))
    }
    if (rows.size == 1) rows.head else Union(rows)
  }
}
