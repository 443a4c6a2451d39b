// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.{AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.inference.times.TemporalCondition
import org.apache.spark.sql.changelog.plans.{StateTable, TemporalFilter}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Filters by what time it is. Rows come and go by themselves, so the result may insert and delete
 * whatever the input does. Where conditions only let rows in, those that are in stay.
 */
object TemporalFilterInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[TemporalFilter]

  /** The old version of a row may be in, and the new one not. */
  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    val leaves = !plan.asInstanceOf[TemporalFilter].conditions.forall(TemporalCondition.comes)
    inputs.head.kinds.union(ModifyKindSet.InsertOnly.copy(delete = leaves))
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${node.name} must see the old row to know that it leaves")

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val conditions = node.plan.asInstanceOf[TemporalFilter].conditions
    val (come, others) = conditions.partition(TemporalCondition.comes)
    val (leave, either) = others.partition(TemporalCondition.leaves)
    val comes =
      if (come.isEmpty) None else Some("rows come when the time is such that " + texts(come))
    val leaves =
      if (leave.isEmpty) None
      else Some("rows leave when the time is no longer such that " + texts(leave))
    val comeAndLeave =
      if (either.isEmpty) None
      else Some("rows come and leave as the time makes it " + texts(either))
    Decision(
      Seq(Demand.takesBack(node.plan)),
      Some("wait for the next time at which a row comes or leaves"),
      Seq(StateTable("rows", Seq("time", "row"), "count, shown", "the time")),
      comes.toSeq ++ leaves ++ comeAndLeave)
  }

  private def texts(conditions: Seq[Expression]): String =
    conditions.map(DescribeNode.expression).mkString(" and ")
}
