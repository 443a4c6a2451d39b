// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.expressions.{Alias, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan

import org.apache.spark.sql.changelog.compat.SparkAggregates
import org.apache.spark.sql.changelog.execution.aggregate.signed.SignedFunction
import org.apache.spark.sql.changelog.execution.session.PlanChangelogSession
import org.apache.spark.sql.changelog.inference.AggregateForm
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.plans.ChangelogReplay

/**
 * Plans Spark's aggregate over replayed rows, so that its functions see the rows in order.
 *
 * When Spark's hash aggregates run out of memory (with object buffers: after 128 groups), a group's later rows
 * may overtake earlier rows. An untouched list could then change its order from batch to batch, and a
 * retraction would not match the emitted row. Replayed rows are sorted by group. Spark's sort aggregates thus
 * need memory for a single group, and neither a hash map nor a sort.
 */
object PlanReplayedAggregate {

  /** Matches an aggregate over replayed rows, and returns the replay. */
  def unapply(aggregate: Aggregate): Option[ChangelogReplay] = replayBelow(aggregate.child)

  def apply(
      session: SparkSession,
      aggregate: Aggregate,
      replay: ChangelogReplay,
      plan: LogicalPlan => SparkPlan): SparkPlan = {
    val keepsSessions =
      AggregateForm.keepsSessions(aggregate, retracts = replay.inputKind.isDefined)
    val planned = session.sessionState.planner
      .Aggregation(if (keepsSessions) inAnyOrder(aggregate) else aggregate)
      .head
    val overReplay = SparkAggregates.sorted(planned, normalizedBelow(_, replay))
    SparkAggregates.sessionsOf(planned) match {
      case Some(merging) if keepsSessions =>
        val state = AssignStateInfo(session, replay.operatorId)
        val sessions = PlanChangelogSession(aggregate, replay, merging, state, plan)
        SparkAggregates.withSessions(overReplay, sessions)
      case _ => overReplay
    }
  }

  /** Returns the aggregate with functions whose buffers do not depend on the order of rows. */
  private def inAnyOrder(aggregate: Aggregate): LogicalPlan = aggregate.transformExpressions {
    case call: AggregateExpression =>
      call.copy(aggregateFunction = SignedFunction.inAnyOrder(call.aggregateFunction))
  }

  /** Removes Spark's normalization of floating point groups, which would hide that the rows are sorted. */
  private def normalizedBelow(group: NamedExpression, replay: ChangelogReplay): NamedExpression =
    group match {
      case alias: Alias => replay.partition.find(_.exprId == alias.exprId).getOrElse(alias)
      case other => other
    }

  private def replayBelow(plan: LogicalPlan): Option[ChangelogReplay] = plan match {
    case replay: ChangelogReplay => Some(replay)
    // Spark's nodes for DISTINCT and for Python functions, and this project's sort
    case _: Project | _: Filter | _: Expand | _: Aggregate | _: Sort =>
      replayBelow(plan.children.head)
    case _ => None
  }
}
