// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}

import org.apache.spark.sql.changelog.inference.AggregateForm
import org.apache.spark.sql.changelog.inference.times.EventTime
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Groups: a group appears, its value moves, and it goes when its last row does.
 *
 * A group's old value is known from state, so the aggregate can send either form of update, and it
 * must be told what leaves a group, so it asks for both images of what updates. Without functions
 * (`DISTINCT`) a group's row never moves, and over insert-only input it never goes. A group without
 * grouping columns is one row. A session goes when a later row merges it with another.
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
    else if (input.changesRows || AggregateForm.groupsSessions(agg)) ModifyKindSet.All
    else if (AggregateForm.calls(agg).isEmpty && agg.groupingExpressions.nonEmpty)
      ModifyKindSet.InsertOnly
    else ModifyKindSet.InsertUpdate
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val agg = node.plan.asInstanceOf[Aggregate]
    val retracts = node.child.kinds.changesRows
    AggregateState(agg, AggregateForm.calls(agg), eventTime(agg), retracts)
      .decision(Seq(Demand.takesBack(agg)), AggregateForm.waits(agg, node.kinds, retracts))
  }

  /** Whether groups come once, when the watermark has passed them. */
  private def emitsClosedGroups(agg: Aggregate, mode: OutputMode): Boolean =
    mode == OutputMode.Append && eventTime(agg).isDefined

  private def eventTime(agg: Aggregate): Option[String] =
    agg.groupingExpressions.flatMap(EventTime.columnOf).headOption
}
