// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis.inference

import org.apache.spark.sql.catalyst.expressions.{AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.analysis.{DescribeNode, EventTime, StateTable, WindowStack}
import org.apache.spark.sql.changelog.plans.StateTtl
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Nodes that compute something from all rows of a partition: window functions, and functions of the
 * user over groups. The rows are kept, and what a touched partition gave before is compared with
 * what it gives now, so that anything can happen to the result whatever the input does.
 */
object RecomputeInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case _: Window | _: WindowGroupLimit | _: MapGroups | _: CoGroup => true
    case _: FlatMapGroupsInPandas | _: FlatMapGroupsInArrow => true
    case _: FlatMapCoGroupsInPandas | _: FlatMapCoGroupsInArrow => true
    case _ => false
  }

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = ModifyKindSet.All

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision =
    if (WindowStack.sharesRows(node.plan)) {
      Decision(
        Seq(Demand.takesBack(node.plan)),
        Some("recompute touched partitions, over the rows of the window below"))
    } else keepRows(node)

  private def keepRows(node: InferredNode): Decision = Decision(
    node.children.map(_ => Demand.takesBack(node.plan)),
    Some("recompute touched partitions"),
    partitions(node.plan).zipWithIndex.map { case (partition, index) =>
      val name = if (node.children.size == 1) "rows" else Seq("left rows", "right rows")(index)
      val eventTime = partition.flatMap(EventTime.columnOf).headOption
      val bound = eventTime
        .map(column => s"watermark on $column")
        .getOrElse(StateTable.unbounded(StateTtl.of(node.plan, index)))
      StateTable(name, partition.map(DescribeNode.expression) :+ "row", "count", bound)
    })

  /** What each input is partitioned by. */
  private def partitions(plan: LogicalPlan): Seq[Seq[Expression]] = plan match {
    case window: Window => Seq(window.partitionSpec)
    case limit: WindowGroupLimit => Seq(limit.partitionSpec)
    case groups: MapGroups => Seq(groups.groupingAttributes)
    case groups: FlatMapGroupsInPandas => Seq(groups.groupingAttributes)
    case groups: FlatMapGroupsInArrow => Seq(groups.groupingAttributes)
    case groups: CoGroup => Seq(groups.leftGroup, groups.rightGroup)
    case groups: FlatMapCoGroupsInPandas => Seq(groups.leftAttributes, groups.rightAttributes)
    case groups: FlatMapCoGroupsInArrow => Seq(groups.leftAttributes, groups.rightAttributes)
    case _ => Nil
  }
}
