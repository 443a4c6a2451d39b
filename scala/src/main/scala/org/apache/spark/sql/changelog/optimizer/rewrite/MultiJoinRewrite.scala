// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.inference.nodes.MultiJoinInference
import org.apache.spark.sql.changelog.plans.{ChangelogMultiJoin, JoinedSide, MultiJoin}

/**
 * Replaces a [[MultiJoin]] by a [[ChangelogMultiJoin]].
 * {{{
 *   MultiJoin a.k = b.k = c.k     =>   ChangelogMultiJoin [a.k] [b.k] [c.k]
 *   :- a  [I,UB,UA,D]                  :- a  [I,UB,UA,D]
 *   :- b  [I,UB,UA,D]                  :- b  [I,UB,UA,D]
 *   +- c  [I]                          +- c  [I]
 * }}}
 */
private[optimizer] object MultiJoinRewrite extends NodeRewrite {

  override def isDefinedAt(node: AnnotatedPlan): Boolean = node.plan.isInstanceOf[MultiJoin]

  override def apply(
      node: AnnotatedPlan,
      inputs: Seq[LogicalPlan],
      ids: OperatorIds): LogicalPlan = {
    val join = node.plan.asInstanceOf[MultiJoin]
    val sides = MultiJoinInference.states(node).zipWithIndex.map { case (state, number) =>
      val isLeft = MultiJoinInference.isFirst(number)
      JoinedSide(
        join.keys(number).map(NodeRewrite.sameBytes),
        RowKind.find(inputs(number).output),
        state.form(isLeft),
        state.rowKey(isLeft).map(NodeRewrite.sameBytes),
        tracksMatches = false,
        JoinRewrite.replaces(node.children(number)))
    }
    val rewritten = ChangelogMultiJoin(
      sides,
      join.matchesNull,
      join.conditions,
      JoinRewrite.result(node),
      ids.next(),
      inputs)
    NodeRewrite.select(rewritten, node.plan.output, withKind = !node.mode.isInsertOnly)
  }
}
