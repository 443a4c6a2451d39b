// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.inference.nodes.{JoinState, StaticInference}
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, EquiJoin}
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/**
 * Replaces a `Join` of two changelogs by a [[ChangelogJoin]].
 * {{{
 *   Join LeftOuter, (o.uid = u.uid AND o.ts > u.ts)     =>   ChangelogJoin [o.uid] [u.uid], o.ts > u.ts
 *   :- orders  [I,UB,UA,D]                                   :- orders  [I,UB,UA,D]
 *   +- users   [I,UB,UA,D]                                   +- users   [I,UB,UA,D]
 * }}}
 * A join with something static stays Spark's own, and the row kind passes through. Operators below
 * it must not suffer from how Spark joins: it may stop before it has read all changes, and without
 * an equality it may read them several times, unless the static side is broadcast.
 */
private[optimizer] object JoinRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan match {
    case _: Join | _: LookupJoin => true
    case _ => false
  }

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val rewritten =
      if (node.children.exists(side => StaticInference.isStatic(side.plan))) {
        lookUpStatic(node, inputs)
      } else join(node, inputs, ids)
    NodeRewrite.select(rewritten, node.plan.output, withKind = !node.mode.isInsertOnly)
  }

  private def lookUpStatic(node: AnnotatedPlan, inputs: Seq[LogicalPlan]): LogicalPlan = {
    val sides = node.children.zip(inputs).map { case (side, input) =>
      if (keepsState(side)) ChangelogDrain(input) else input
    }
    val join = node.plan.asInstanceOf[Join]
    val hint =
      if (EquiJoin(join).key(left = true).nonEmpty || !node.children.exists(keepsState)) join.hint
      else {
        val broadcast = Some(HintInfo(Some(BROADCAST)))
        if (StaticInference.isStatic(join.left)) JoinHint(broadcast, None)
        else JoinHint(None, broadcast)
      }
    join.copy(left = sides(0), right = sides(1), hint = hint)
  }

  private def keepsState(node: AnnotatedPlan): Boolean =
    node.state.nonEmpty || node.children.exists(keepsState)

  private def join(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): ChangelogJoin = {
    val state = JoinState(node)
    val spread = SpreadRows.of(node, state)
    val salted = spread.fold(inputs)(_.inputs(inputs))
    def side(number: Int) = {
      val isLeft = number == 0
      JoinedSide(
        state.equi.key(isLeft).map(NodeRewrite.sameBytes) ++ spread.map(_.salt(isLeft)),
        RowKind.find(inputs(number).output),
        state.form(isLeft),
        state.rowKey(isLeft).map(NodeRewrite.sameBytes),
        state.tracksMatches(isLeft),
        replaces(node.children(number)))
    }
    ChangelogJoin(
      state.join.joinType,
      side(0),
      side(1),
      state.equi.matchesNull ++ spread.map(_ => true),
      state.equi.rest.reduceOption(And(_, _)),
      result(node),
      ids.next(),
      salted(0),
      salted(1))
  }

  /** Whether a row of an input replaces the one with its key. */
  private[rewrite] def replaces(input: AnnotatedPlan): Boolean =
    input.required == UpdateKind.OnlyUpdateAfter

  /** How the join emits changes; paired by the key the consumer replaces rows by, or any. */
  private[rewrite] def result(node: AnnotatedPlan): JoinResult = {
    val key = node.requiredKey.orElse(node.upsertKeys.headOption)
    JoinResult(
      if (node.mode.kinds.update) key.map(node.ordered) else None,
      node.mode.kinds.delete,
      node.mode.updateKind,
      RowKind.newAttribute())
  }
}
