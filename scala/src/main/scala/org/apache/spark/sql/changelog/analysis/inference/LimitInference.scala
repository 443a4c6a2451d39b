// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis.inference

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.analysis.StateTable
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * `LIMIT` and `OFFSET` that have not become a rank.
 *
 * Without an order they keep the rows that came first, which only insert if the input does. The
 * local limit below a global one is an optimization for batch queries; it passes on what it gets.
 */
object LimitInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan match {
    case _: GlobalLimit | _: LocalLimit | _: Offset => true
    case _ => false
  }

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = plan match {
    case _: LocalLimit => inputs.head.kinds
    case _ if inputs.head.kinds.isInsertOnly && !isOrdered(inputs.head.plan) =>
      ModifyKindSet.InsertOnly
    case _ => ModifyKindSet.All
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = node.plan match {
    case _: LocalLimit => Decision(Seq(demand))
    case limit =>
      val retracts = node.child.kinds.changesRows
      Decision(
        Seq(Demand.takesBack(limit)),
        Some(if (retracts) "retract" else "append-fast"),
        Seq(StateTable("rows", Nil, "row", if (retracts) "unbounded" else "the limit")))
  }

  private def isOrdered(plan: LogicalPlan): Boolean = plan match {
    case _: Sort => true
    case _: LocalLimit | _: GlobalLimit | _: Offset | _: Project => isOrdered(plan.children.head)
    case _ => false
  }
}
