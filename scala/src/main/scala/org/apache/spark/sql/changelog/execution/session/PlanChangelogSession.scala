// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.session

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo

import org.apache.spark.sql.changelog.compat.{MergedSessions, SparkAggregates}
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
      merging: MergedSessions,
      state: StatefulOperatorStateInfo,
      plan: LogicalPlan => SparkPlan): ChangelogSessionExec = {
    val columns = merging.grouping
    val session = merging.session
    val partition =
      columns.filterNot(c => c.exprId == session.exprId || c.exprId == replay.outputKind.exprId)
    val buffers =
      merging.functions.flatMap(_.aggregateFunction.inputAggBufferAttributes)
    ChangelogSessionExec(
      partition,
      session,
      merging.functions,
      buffers,
      replay.dropsLate,
      replay.emitsClosed,
      replay.outputKind,
      Some(AssignStateInfo.placed(state, partition)),
      SparkAggregates
        .over(merging.input, plan(rowsBelow(aggregate.child, replay)), replay.outputKind))
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
}
