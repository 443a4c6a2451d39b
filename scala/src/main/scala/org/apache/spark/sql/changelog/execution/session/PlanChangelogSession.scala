// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.session

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.expressions.NamedExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate._
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo

import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.plans.ChangelogReplay

/**
 * Plans an aggregate by session over rows that only come, out of what Spark plans for it over
 * replayed rows: buffers of sessions are kept instead of rows.
 *
 * {{{
 *   SortAggregate (final)  [who, kind, session]        SortAggregate (final)  [who, kind, session]
 *   +- MergingSessions                            =>   +- ChangelogSession  [who] [session]
 *      +- HashAggregate (partial)                         +- HashAggregate (partial)  [who, session]
 *         +- Replay                                          +- rows
 *            +- rows
 * }}}
 */
private[execution] object PlanChangelogSession {

  /**
   * @param aggregate
   *   over `replay`
   * @param merging
   *   what Spark merges its sessions by
   * @param plan
   *   plans what is below
   */
  def apply(
      aggregate: Aggregate,
      replay: ChangelogReplay,
      merging: MergingSessionsExec,
      state: StatefulOperatorStateInfo,
      plan: LogicalPlan => SparkPlan): ChangelogSessionExec = {
    val columns = merging.groupingExpressions.map(_.toAttribute)
    val session = merging.sessionExpression.toAttribute
    val partition =
      columns.filterNot(c => c.exprId == session.exprId || c.exprId == replay.outputKind.exprId)
    val buffers =
      merging.aggregateExpressions.flatMap(_.aggregateFunction.inputAggBufferAttributes)
    ChangelogSessionExec(
      partition,
      session,
      merging.aggregateExpressions,
      buffers,
      replay.dropsLate,
      replay.emitsClosed,
      replay.outputKind,
      Some(AssignStateInfo.placed(state, partition)),
      replay.ttl,
      partial(merging.child, replay, plan(rowsBelow(aggregate.child, replay))))
  }

  /** What the aggregate reads, without the replay. */
  private def rowsBelow(plan: LogicalPlan, replay: ChangelogReplay): LogicalPlan = plan match {
    case `replay` => replay.child
    case sort: Sort => rowsBelow(sort.child, replay)
    case other =>
      val rows = rowsBelow(other.children.head, replay)
      other match {
        case Project(list, _) =>
          Project(list.filterNot(_.exprId == replay.outputKind.exprId), rows)
        case _ => other.withNewChildren(Seq(rows))
      }
  }

  private def partial(plan: SparkPlan, replay: ChangelogReplay, rows: SparkPlan): SparkPlan = {
    def without(all: Seq[NamedExpression]) =
      all.filterNot(_.exprId == replay.outputKind.exprId)
    plan match {
      case hash: HashAggregateExec =>
        hash.copy(
          groupingExpressions = without(hash.groupingExpressions),
          resultExpressions = without(hash.resultExpressions),
          child = rows)
      case hash: ObjectHashAggregateExec =>
        hash.copy(
          groupingExpressions = without(hash.groupingExpressions),
          resultExpressions = without(hash.resultExpressions),
          child = rows)
      case sort: SortAggregateExec =>
        sort.copy(
          groupingExpressions = without(sort.groupingExpressions),
          resultExpressions = without(sort.resultExpressions),
          child = rows)
      case other => throw SparkException.internalError(s"Sessions are aggregated by $other")
    }
  }
}
