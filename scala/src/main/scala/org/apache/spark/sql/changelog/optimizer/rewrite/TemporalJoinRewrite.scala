// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.inference.nodes.TemporalJoinInference
import org.apache.spark.sql.changelog.plans._

/**
 * Replaces a `TemporalJoin` by the operator that keeps versions in order of time.
 * {{{
 *   TemporalJoin Inner [o.cur] [r.cur]      =>   ChangelogTemporalJoin [o.cur] [r.cur]
 *   :- orders  [I,UB,UA,D]                       :- Project [*, o.at + 1 AS time]
 *   +- rates   [I]                               :  +- orders  [I,UB,UA,D]
 *                                                +- rates   [I]
 * }}}
 */
private[optimizer] object TemporalJoinRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan.isInstanceOf[TemporalJoin]

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val join = node.plan.asInstanceOf[TemporalJoin]
    val (left, leftTime) = withTime(inputs(0), join.leftTime)
    val (right, rightTime) = withTime(inputs(1), join.rightTime)
    def side(number: Int, key: Seq[Expression], time: Attribute, input: LogicalPlan) =
      TemporalSide(
        key.map(NodeRewrite.sameBytes),
        time,
        RowKind.find(input.output))
    val matching = TemporalMatching(
      join.joinType,
      join.matchesNull,
      join.isForward,
      join.allowsEqual,
      join.ties,
      join.condition,
      isTimed = TemporalJoinInference.eventTimes(join).isDefined,
      appends = node.mode.isInsertOnly)
    val rewritten = ChangelogTemporalJoin(
      side(0, join.leftKey, leftTime, left),
      side(1, join.rightKey, rightTime, right),
      matching,
      RowKind.newAttribute(),
      ids.next(),
      left,
      right)
    NodeRewrite.select(rewritten, join.output, withKind = !node.mode.isInsertOnly)
  }

  /** A side with its time among its columns. */
  private def withTime(side: LogicalPlan, time: Expression): (LogicalPlan, Attribute) =
    time match {
      case column: Attribute => (side, side.output.find(_.exprId == column.exprId).get)
      case computed =>
        val alias = Alias(computed, "time")()
        (Project(side.output :+ alias, side), alias.toAttribute)
    }
}
