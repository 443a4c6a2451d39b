// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, PythonUDTF}
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.inference.{
  DescribeNode,
  GroupedMap,
  InferenceErrors,
  RunningWindow,
  WindowStack
}
import org.apache.spark.sql.changelog.plans.{RecursiveQuery, StateTable}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Nodes that compute something from all rows of a partition: window functions, and functions of the
 * user over groups. The rows are kept, and what a touched partition gave before is compared with
 * what it gives now, so that anything can happen to the result whatever the input does.
 *
 * To a reader that only takes new rows a function over groups by event time gives its results once,
 * when the watermark has closed the group, and window functions that run through new rows in the
 * order of event time give theirs row by row, when the watermark has passed it. Those keep no rows
 * that are passed.
 */
object RecomputeInference extends NodeInference {
  private[inference] val OfTouched = "recompute touched partitions"

  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case _: Window | _: WindowGroupLimit | GroupedMap(_) => true
    case _ => false
  }

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = plan match {
    case GroupedMap(map) if mode == OutputMode.Append && eventTime(map.groups).isDefined =>
      ModifyKindSet.InsertOnly
    case RunningWindow(_) if mode == OutputMode.Append && inputs.head.kinds.isInsertOnly =>
      ModifyKindSet.InsertOnly
    case _ => ModifyKindSet.All
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

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
        Seq(Demand.takesBack(plan)),
        Some(s"$OfTouched, over the rows of the window below"))
    case plan =>
      keepRows(
        node,
        Seq(plan).collect {
          case window: Window => window.partitionSpec
          case limit: WindowGroupLimit => limit.partitionSpec
        })
  }

  private def keepBuffers(window: Window, time: Attribute): Decision = {
    val partition = window.partitionSpec.map(DescribeNode.expression)
    val bound = eventTime(Seq(window.partitionSpec))
      .map(column => s"watermark on $column")
      .getOrElse(StateTable.unbounded)
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

  /** @param partitions by what the rows of each input are kept */
  private def keepRows(node: InferredNode, partitions: Seq[Seq[Expression]]): Decision = {
    val bound = eventTime(partitions)
      .map(column => s"watermark on $column")
      .getOrElse(StateTable.unbounded)
    val row = if (partitions.size == 1) Seq("row") else Seq("side", "row")
    val key = partitions.head.map(DescribeNode.expression) ++ row
    Decision(
      node.children.map(_ => Demand.takesBack(node.plan)),
      Some(OfTouched),
      Seq(StateTable("rows", key, "count", bound)))
  }

  /** The event time among the columns that all inputs are partitioned by, if there is one. */
  private def eventTime(partitions: Seq[Seq[Expression]]): Option[String] =
    partitions.map(_.map(EventTime.columnOf)).transpose.collectFirst {
      case columns if columns.forall(_.isDefined) => columns.head.get
    }
}

/**
 * A recursive query: any row of its inputs may bear on any row of its result. The rows of all inputs
 * are kept, and where one changes the result over the old rows is compared with that over the new.
 */
object RecursionInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[RecursiveQuery]

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = ModifyKindSet.All

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = Decision(
    node.children.map(_ => Demand.takesBack(node.plan)),
    Some("recompute everything"),
    Seq(StateTable("rows", Seq("input", "row"), "count", StateTable.unbounded)),
    Seq("a batch that changes an input runs the recursion over all old and over all new rows"))
}

/**
 * Spark's own stateful operators, and functions over whole partitions of rows: code that has no
 * notion of a row being taken back. They take new rows only, and what they give is new.
 */
object StockStatefulInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case _: FlatMapGroupsWithState | _: FlatMapGroupsInPandasWithState => true
    case _: TransformWithState | _: TransformWithStateInPySpark => true
    case _: Deduplicate | _: DeduplicateWithinWatermark => true
    case _: MapPartitions | _: MapInPandas | _: MapInArrow | _: AttachDistributedSequence => true
    case _: MapPartitionsInR | _: MapPartitionsInRWithArrow => true
    case Generate(function: PythonUDTF, _, _, _, _, _) => readsTable(function)
    case _ => false
  }

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    inputs.find(_.kinds.changesRows).foreach { input =>
      throw InferenceErrors.consumerCannotTakeChanges(plan, input, advice(plan))
    }
    plan match {
      // a generator sees the partitions of a batch, and a table of all rows would have larger ones
      case _: Generate =>
        throw InferenceErrors.nodeNotSupported(
          plan,
          "a function that reads a table would see the rows of one batch only",
          advice(plan))
      case _ => ModifyKindSet.InsertOnly
    }
  }

  private def advice(plan: LogicalPlan): String = plan match {
    case _: FlatMapGroupsWithState | _: FlatMapGroupsInPandasWithState | _: TransformWithState |
        _: TransformWithStateInPySpark | _: Deduplicate | _: DeduplicateWithinWatermark =>
      "Apply it to the stream before from_changelog, or write the query below it as SQL that " +
        "takes changes."
    case _ =>
      "Compute row by row instead, with a function of the row (udf, pandas_udf, map, a table " +
        "function of columns), or group by group, with applyInPandas, applyInArrow or mapGroups, " +
        "which take changes; or apply it to the stream before from_changelog."
  }

  /** Whether it is given a table: its rows, and when it is over, are more than one row tells. */
  private def readsTable(function: PythonUDTF): Boolean =
    function.tableArguments.exists(_.contains(true))

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision =
    Decision(node.children.map(_ => Demand.nothing))
}
