// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.inference.{EquiJoin, InferenceErrors}
import org.apache.spark.sql.changelog.plans.LookupJoin
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Joins of each left row, once, with the right rows that are there after its batch.
 *
 * What comes out never changes, and depends on when rows come: here alone the result is not that of
 * the query over all rows. A left row that is taken back would have to take back what it was joined
 * with, of which there is no memory, so left rows must only come.
 */
object LookupJoinInference extends NodeInference {
  override def appliesTo(plan: LogicalPlan): Boolean = plan.isInstanceOf[LookupJoin]

  override def kinds(
      plan: LogicalPlan,
      inputs: Seq[InferredNode],
      mode: OutputMode): ModifyKindSet = {
    if (inputs.head.kinds.changesRows) {
      throw InferenceErrors.consumerCannotTakeChanges(
        plan,
        inputs.head,
        "Join with the table itself, without lookup, for rows that follow its changes.")
    }
    ModifyKindSet.InsertOnly
  }

  override def objection(node: InferredNode, key: AttributeSet): Option[String] = None

  override def decide(node: InferredNode, demand: Demand): Decision = {
    val join = node.plan.asInstanceOf[LookupJoin].toJoin
    val asked = Demand.takesBack(node.plan)
    val Seq(left, right) =
      node.children.zip(Seq(Demand.nothing, asked)).map { case (side, demand) =>
        JoinState.input(side, demand)
      }
    val decision = JoinState(join, EquiJoin(join), left, right, isLookup = true)
      .decision(Seq(Demand.nothing, asked))
    decision.copy(reasons = decision.reasons :+
      "each left row is joined once, with the right rows after its batch; the query's result over " +
      "all rows may be another")
  }
}
