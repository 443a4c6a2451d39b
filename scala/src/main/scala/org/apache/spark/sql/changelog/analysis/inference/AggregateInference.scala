// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis.inference

import org.apache.spark.sql.catalyst.expressions.{AttributeSet, Expression}
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}
import org.apache.spark.sql.changelog.analysis.{DescribeNode, EventTime, StateTable}

/**
 * Groups: a group appears, its value moves, and it goes when its last row does.
 *
 * A group's old value is known from state, so the aggregate can send either form of update, and it
 * must be told what leaves a group, so it asks for both images of what updates. Without functions
 * (`DISTINCT`) a group's row never moves, and over insert-only input it never goes. A group without
 * grouping columns is one row.
 *
 * To a reader that only takes new rows an aggregate by event time gives each group once, when the
 * watermark has closed it.
 */
object AggregateInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[Aggregate]

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    val agg = plan.asInstanceOf[Aggregate]
    val input = inputs.head.kinds
    if (emitsClosedGroups(agg, mode)) ModifyKindSet.InsertOnly
    else if (input.changesRows) ModifyKindSet.All
    else if (calls(agg).isEmpty && agg.groupingExpressions.nonEmpty) ModifyKindSet.InsertOnly
    else ModifyKindSet.InsertUpdate
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val agg = node.plan.asInstanceOf[Aggregate]
    val retracts = node.child.kinds.changesRows
    val waits = node.kinds.isInsertOnly && eventTime(agg).isDefined && calls(agg).nonEmpty
    Decision(
      Seq(Demand.takesBack(agg)),
      Some(strategy(agg, retracts) + (if (waits) ", emitted when the watermark closes it" else "")),
      state(agg, retracts))
  }

  /** Whether groups come once, when the watermark has passed them. */
  private def emitsClosedGroups(agg: Aggregate, mode: OutputMode): Boolean =
    mode == OutputMode.Append && eventTime(agg).isDefined

  private def eventTime(agg: Aggregate): Option[String] =
    agg.groupingExpressions.flatMap(EventTime.columnOf).headOption

  private def calls(agg: Aggregate): Seq[AggregateExpression] =
    agg.aggregateExpressions.flatMap(_.collect { case call: AggregateExpression => call }).distinct

  private def strategy(agg: Aggregate, retracts: Boolean): String =
    if (calls(agg).isEmpty) "groups only"
    else if (!retracts) "plain buffers"
    else if (extrema(agg).nonEmpty) "signed buffers and counted values"
    else "signed buffers"

  private def state(agg: Aggregate, retracts: Boolean): Seq[StateTable] = {
    val group = agg.groupingExpressions.map(DescribeNode.expression)
    val bound = eventTime(agg).map(column => s"watermark on $column").getOrElse("unbounded")
    val counted = if (retracts) extrema(agg) else Nil
    val best = counted.map(value => s" and best values of $value").mkString
    val values = if (calls(agg).isEmpty) (if (retracts) "row count" else "nothing") else "buffers"
    StateTable("groups", group, values + best, bound) +:
      counted.map(value => StateTable(s"values of $value", group :+ value, "count", bound))
  }

  /** What `min` and `max` are taken of: under retraction the next best value must be known. */
  private def extrema(agg: Aggregate): Seq[String] =
    calls(agg)
      .map(_.aggregateFunction)
      .collect { case f @ (_: Min | _: Max | _: MinBy | _: MaxBy) => f.children.map(describe) }
      .map(_.mkString(", "))
      .distinct

  private def describe(argument: Expression): String = DescribeNode.expression(argument)
}
