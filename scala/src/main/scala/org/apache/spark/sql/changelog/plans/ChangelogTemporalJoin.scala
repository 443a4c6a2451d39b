// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, LogicalPlan}

/**
 * Joins each left row with the version of its time; see [[TemporalJoin]].
 *
 * @param leftKey
 *   the left side of the join key, such that equal values have equal bytes
 * @param leftTime
 *   a column of `left`
 * @param isTimed
 *   whether both times are event times, below whose watermark nothing changes
 * @param leftTtl
 *   how long left rows are kept that nothing changes, in ms, if a hint says so
 * @param appends
 *   whether a left row comes out once, when the watermark has passed it
 */
case class ChangelogTemporalJoin(
    joinType: JoinType,
    leftKey: Seq[Expression],
    rightKey: Seq[Expression],
    matchesNull: Seq[Boolean],
    leftTime: Attribute,
    rightTime: Attribute,
    isForward: Boolean,
    allowsEqual: Boolean,
    ties: Seq[SortOrder],
    condition: Option[Expression],
    leftKind: Option[Attribute],
    rightKind: Option[Attribute],
    isTimed: Boolean,
    leftTtl: Option[Long],
    rightTtl: Option[Long],
    appends: Boolean,
    outputKind: Attribute,
    operatorId: Long,
    left: LogicalPlan,
    right: LogicalPlan)
    extends BinaryNode
    with KeepsState {

  override def output: Seq[Attribute] =
    ChangelogJoin.output(
      joinType,
      ChangelogJoin.columns(left.output, leftKind),
      ChangelogJoin.columns(right.output, rightKind)) :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override protected def withNewChildrenInternal(
      newLeft: LogicalPlan,
      newRight: LogicalPlan): ChangelogTemporalJoin = copy(left = newLeft, right = newRight)
}
