// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.inference.nodes.MultiJoinInference
import org.apache.spark.sql.changelog.plans.{ChangelogMultiJoin, MultiJoin}
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

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
    val states = MultiJoinInference.states(node).zipWithIndex
    val rewritten = ChangelogMultiJoin(
      join.keys.map(_.map(NodeRewrite.sameBytes)),
      join.matchesNull,
      join.conditions,
      inputs.flatMap(input => RowKind.find(input.output)),
      states.map { case (state, index) => state.side(MultiJoinInference.isFirst(index)) },
      states.map { case (state, index) =>
        state.rowKey(MultiJoinInference.isFirst(index)).map(NodeRewrite.sameBytes)
      },
      node.children.map(_.required == UpdateKind.OnlyUpdateAfter),
      if (node.mode.kinds.update) JoinRewrite.pairBy(node) else None,
      node.mode.kinds.delete,
      node.mode.updateKind,
      RowKind.newAttribute(),
      ids.next(),
      inputs)
    NodeRewrite.select(rewritten, node.plan.output, withKind = !node.mode.isInsertOnly)
  }
}
