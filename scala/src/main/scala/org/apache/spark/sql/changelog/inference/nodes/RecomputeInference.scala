// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, PythonUDTF}
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.ModifyKindSet
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.inference.{
  BoundedWindow, DescribeNode, GroupedMap, InferenceErrors, RunningWindow, WindowStack
}
import org.apache.spark.sql.changelog.plans.{RecursiveQuery, StateTable}

/**
 * Infers the changes of nodes that compute over whole partitions: window functions and grouped
 * maps. The operator stores the rows, and compares the old and new results of each changed
 * partition. All row kinds are therefore possible for every input.
 *
 * Window functions over rows up to a fixed distance are computed again for the rows around changed rows only.
 *
 * In append mode, a grouped map by event time emits results once, after the watermark closes the
 * group. Running window functions over insert-only input emit row by row, after the watermark
 * passes a row. Neither stores rows older than the watermark.
 */
object RecomputeInference extends NodeInference[LogicalPlan] {
  private[inference] val RecomputeTouched = "recompute touched partitions"

  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case _: Window | _: WindowGroupLimit | GroupedMap(_) => true
    case _ => false
  }

  override def kinds(plan: LogicalPlan, inputs: NodeInputs): ModifyKindSet = plan match {
    case GroupedMap(map) if inputs.appends && eventTime(map.groups).isDefined =>
      ModifyKindSet.InsertOnly
    case RunningWindow(_) if inputs.appends && inputs.head.kinds.isInsertOnly =>
      ModifyKindSet.InsertOnly
    case _ => ModifyKindSet.All
  }

  override def decide(node: InferredNode, demand: Demand): Decision = node.plan match {
    case GroupedMap(map) if node.kinds.isInsertOnly =>
      val column = eventTime(map.groups).mkString
      keepRows(node, map.groups).copy(
        strategy = Some("compute closed partitions"),
        reasons = Seq(s"a group is emitted when the watermark on $column has passed it"))
    case GroupedMap(map) => keepRows(node, map.groups)
    case window @ RunningWindow(time) if node.kinds.isInsertOnly => keepBuffers(window, time)
    case plan if WindowStack.sharesRows(plan) =>
      Decision(
        Seq(Demand.bothImagesFor(plan)),
        Some(s"$RecomputeTouched, over the rows of the window below"))
    case window @ BoundedWindow(_) => keepOrder(node, window.asInstanceOf[Window])
    case plan =>
      keepRows(
        node,
        Seq(plan).collect {
          case window: Window => window.partitionSpec
          case limit: WindowGroupLimit => limit.partitionSpec
        })
  }

  private def keepOrder(node: InferredNode, window: Window): Decision = Decision(
    Seq(Demand.bothImagesFor(node.plan)),
    Some("recompute the rows around changed rows"),
    Seq(
      StateTable(
        "rows",
        window.partitionSpec.map(DescribeNode.expression) :+ "run",
        "rows in order",
        StateTable.unbounded)))

  private def keepBuffers(window: Window, time: Attribute): Decision = {
    val partition = window.partitionSpec.map(DescribeNode.expression)
    val bound = StateTable.boundedByWatermark(eventTime(Seq(window.partitionSpec)))
    Decision(
      Seq(Demand.nothing),
      Some("run through passed rows"),
      Seq(
        StateTable(
          "rows",
          time.name +: partition :+ "row",
          "count",
          s"watermark on ${time.name}"),
        StateTable("partitions", partition, "buffers", bound)),
      Seq(s"a row is emitted when the watermark on ${time.name} has passed it"))
  }

  /**
   * @param partitions
   *   the partitioning of each input's rows
   */
  private def keepRows(node: InferredNode, partitions: Seq[Seq[Expression]]): Decision = {
    val bound = StateTable.boundedByWatermark(eventTime(partitions))
    val row = if (partitions.size == 1) Seq("row") else Seq("side", "row")
    val key = partitions.head.map(DescribeNode.expression) ++ row
    Decision(
      node.children.map(_ => Demand.bothImagesFor(node.plan)),
      Some(RecomputeTouched),
      Seq(StateTable("rows", key, "count", bound)))
  }

  /** Returns the event time among the partitioning columns of all inputs, if present. */
  private def eventTime(partitions: Seq[Seq[Expression]]): Option[String] =
    partitions.map(_.map(EventTime.columnOf)).transpose.collectFirst {
      case columns if columns.forall(_.isDefined) => columns.head.get
    }
}

/**
 * Infers the changes of a recursive query: a row of an input may affect every row of the result.
 * The operator stores the rows of all inputs. If an input changes, the operator compares the
 * results over old and new rows.
 */
object RecursionInference extends NodeInference[RecursiveQuery] {
  override def kinds(query: RecursiveQuery, inputs: NodeInputs): ModifyKindSet = ModifyKindSet.All

  override def decide(node: InferredNode, demand: Demand): Decision = Decision(
    node.children.map(_ => Demand.bothImagesFor(node.plan)),
    Some("recompute everything"),
    Seq(StateTable("rows", Seq("input", "row"), "count", StateTable.unbounded)),
    Seq("each batch with changes runs the recursion over all old rows and over all new rows"))
}

/**
 * Infers the changes of Spark's own stateful operators, and of functions over whole partitions.
 * Neither supports retractions, so they require insert-only input and emit inserts only.
 */
object StockStatefulInference extends NodeInference[LogicalPlan] {
  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case _: FlatMapGroupsWithState | _: FlatMapGroupsInPandasWithState => true
    case _: TransformWithState | _: TransformWithStateInPySpark => true
    case _: Deduplicate | _: DeduplicateWithinWatermark => true
    case _: MapPartitions | _: MapInPandas | _: MapInArrow | _: AttachDistributedSequence => true
    case _: MapPartitionsInR | _: MapPartitionsInRWithArrow => true
    case Generate(function: PythonUDTF, _, _, _, _, _) => readsTable(function)
    case _ => false
  }

  override def kinds(plan: LogicalPlan, inputs: NodeInputs): ModifyKindSet = {
    inputs.nodes.find(_.kinds.changesRows).foreach { input =>
      throw InferenceErrors.consumerCannotTakeChanges(plan, input, advice(plan))
    }
    plan match {
      // A generator reads the partitions of one batch. The batch query would give the generator
      // larger partitions.
      case _: Generate =>
        throw InferenceErrors.nodeNotSupported(
          plan,
          "a function over a table would see only the rows of one batch",
          advice(plan))
      case _ => ModifyKindSet.InsertOnly
    }
  }

  private def advice(plan: LogicalPlan): String = plan match {
    case _: FlatMapGroupsWithState | _: FlatMapGroupsInPandasWithState | _: TransformWithState |
        _: TransformWithStateInPySpark | _: Deduplicate | _: DeduplicateWithinWatermark =>
      "Apply the node to the stream before from_changelog, or write the node as SQL that " +
        "accepts changes."
    case _ =>
      "Compute row by row instead, with a function of the row (udf, pandas_udf, map, a table " +
        "function of columns), or group by group, with applyInPandas, applyInArrow or mapGroups, " +
        "which accept changes. Or apply the node to the stream before from_changelog."
  }

  /**
   * Whether the function has a table argument. The function then sees many rows, and the end of
   * the table.
   */
  private def readsTable(function: PythonUDTF): Boolean =
    function.tableArguments.exists(_.contains(true))

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(node.children.map(_ => Demand.nothing))
}
