// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, LogicalPlan}

import org.apache.spark.sql.changelog.RowKind

/**
 * Joins each left row with the version of its time; see [[TemporalJoin]].
 *
 * @param outputKind
 *   the row kind of the result
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogTemporalJoin(
    leftSide: TemporalSide,
    rightSide: TemporalSide,
    matching: TemporalMatching,
    outputKind: Attribute,
    operatorId: Long,
    left: LogicalPlan,
    right: LogicalPlan)
    extends BinaryNode
    with KeepsState {

  override def output: Seq[Attribute] =
    ChangelogJoin.output(
      matching.joinType,
      RowKind.without(leftSide.kind, left.output),
      RowKind.without(rightSide.kind, right.output)) :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override protected def withNewChildrenInternal(
      newLeft: LogicalPlan,
      newRight: LogicalPlan): ChangelogTemporalJoin = copy(left = newLeft, right = newRight)
}
