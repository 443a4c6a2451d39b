// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.RowKind

/**
 * Joins several changelogs on one key and emits what a batch does to the result.
 *
 * @param sides
 *   what is said of each input, in the order of `children`
 * @param matchesNull
 *   for each part of the join key, whether NULL equals NULL
 * @param conditions
 *   what rows with equal join keys must meet besides
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogMultiJoin(
    sides: Seq[JoinedSide],
    matchesNull: Seq[Boolean],
    conditions: Seq[Expression],
    result: JoinResult,
    operatorId: Long,
    children: Seq[LogicalPlan])
    extends LogicalPlan
    with KeepsState {

  override def output: Seq[Attribute] = sides
    .zip(children)
    .flatMap { case (side, input) => RowKind.without(side.kind, input.output) } :+ result.kind

  override def producedAttributes: AttributeSet = AttributeSet(result.kind)

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): ChangelogMultiJoin = copy(children = newChildren)
}
