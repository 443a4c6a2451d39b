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
 * Plans Spark's aggregate over replayed rows, so that its functions see them in order.
 *
 * Spark's hash aggregates, when they run out of room (in objects: after 128 groups), let a group's
 * later rows overtake earlier ones. Then a list that nobody touched would have another order in
 * the next batch, and what is taken back would not be what was given. Replayed rows come sorted by
 * group: Spark's sort aggregates need no more room than one group, and neither hash nor sort.
 */
object PlanReplayedAggregate {

  /** The replay below an aggregate, if it is one over replayed rows. */
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

  /** The aggregate with functions whose buffers are the same in whatever order rows come. */
  private def inAnyOrder(aggregate: Aggregate): LogicalPlan = aggregate.transformExpressions {
    case call: AggregateExpression =>
      call.copy(aggregateFunction = SignedFunction.inAnyOrder(call.aggregateFunction))
  }

  /** Spark normalizes groups of floating point, which would hide that they come sorted. */
  private def normalizedBelow(group: NamedExpression, replay: ChangelogReplay): NamedExpression =
    group match {
      case alias: Alias => replay.partition.find(_.exprId == alias.exprId).getOrElse(alias)
      case other => other
    }

  private def replayBelow(plan: LogicalPlan): Option[ChangelogReplay] = plan match {
    case replay: ChangelogReplay => Some(replay)
    // what Spark puts between for DISTINCT and for functions of Python, and we for an order
    case _: Project | _: Filter | _: Expand | _: Aggregate | _: Sort =>
      replayBelow(plan.children.head)
    case _ => None
  }
}
