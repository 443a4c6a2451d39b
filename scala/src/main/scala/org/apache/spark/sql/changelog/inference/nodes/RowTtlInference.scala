// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.plans.{RowTtl, StateTable}
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/** Takes back rows that nothing has changed for some time: it deletes, whatever the input does. */
object RowTtlInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[RowTtl]

  /** The old version of a row may be gone when the new one comes. */
  override def pairsUpdates(node: InferredNode): Boolean = false

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet =
    inputs.head.kinds.union(ModifyKindSet.InsertOnly.copy(delete = true))

  override def objection(node: InferredNode, key: AttributeSet): Option[String] =
    Some(s"${node.name} must see the old row to know that it is no longer there")

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val ttl = Utils.msDurationToString(node.plan.asInstanceOf[RowTtl].ttl)
    Decision(
      Seq(Demand.takesBack(node.plan)),
      Some("wait for the next time at which a row leaves"),
      Seq(
        StateTable(
          "rows",
          Seq("time", "row"),
          "count",
          s"taken back $ttl after their last change")),
      Seq(s"rows leave $ttl after they came or were changed last"))
  }
}
