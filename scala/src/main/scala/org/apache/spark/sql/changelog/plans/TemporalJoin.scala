// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{
  BinaryNode, Join, JoinHint, LogicalPlan, UnaryNode
}

import org.apache.spark.sql.changelog.RowKind

/**
 * Joins each left row with one right row: the last version at the time of the left row.
 *
 * The node stands for a lateral join with the first row in time order, and for Spark's
 * `AsOfJoin`. Present only between analysis and rewriting; a plan is never executed with it.
 *
 * @param joinType
 *   `Inner`, or `LeftOuter` to keep left rows without a version
 * @param matchesNull
 *   for each part of the join key, whether NULL equals NULL
 * @param isForward
 *   whether the join selects the first version after the left row's time instead
 * @param allowsEqual
 *   whether a version with an equal time counts
 * @param ties
 *   the order of versions with equal times
 * @param condition
 *   a further condition; a version that fails it is no match
 */
case class TemporalJoin(
    joinType: JoinType,
    leftKey: Seq[Expression],
    rightKey: Seq[Expression],
    matchesNull: Seq[Boolean],
    leftTime: Expression,
    rightTime: Expression,
    isForward: Boolean,
    allowsEqual: Boolean,
    ties: Seq[SortOrder],
    condition: Option[Expression],
    left: LogicalPlan,
    right: LogicalPlan)
    extends BinaryNode {

  override def output: Seq[Attribute] = ChangelogJoin.output(joinType, left.output, right.output)

  override protected def withNewChildrenInternal(
      newLeft: LogicalPlan,
      newRight: LogicalPlan): TemporalJoin = copy(left = newLeft, right = newRight)
}

/**
 * Joins each left row with the version of its time; see [[TemporalJoin]].
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

/**
 * A side of a temporal join.
 *
 * @param key
 *   the side's join key, with equal bytes for equal values
 * @param time
 *   the column that orders rows
 * @param kind
 *   the row kind, or None for an insert-only side
 */
final case class TemporalSide(key: Seq[Expression], time: Attribute, kind: Option[Attribute])
    extends ParameterGroup

/**
 * The choice of a left row's version in a temporal join, and the time of its emission; see [[TemporalJoin]].
 *
 * @param ties
 *   the order of versions with equal times; the selected one is last
 * @param isTimed
 *   whether both times are event times, with nothing changing before the watermark
 * @param appends
 *   whether a left row is emitted once, after the watermark passes the row
 */
final case class TemporalMatching(
    joinType: JoinType,
    matchesNull: Seq[Boolean],
    isForward: Boolean,
    allowsEqual: Boolean,
    ties: Seq[SortOrder],
    condition: Option[Expression],
    isTimed: Boolean,
    appends: Boolean)
    extends ParameterGroup

/**
 * Joins each left row once, with the right rows present after its batch.
 *
 * The node stands for a join with a [[LookupTable]]. Present only between analysis and rewriting;
 * a plan is never executed with it.
 */
case class LookupJoin(
    joinType: JoinType,
    condition: Option[Expression],
    left: LogicalPlan,
    right: LogicalPlan)
    extends BinaryNode {

  override def output: Seq[Attribute] = ChangelogJoin.output(joinType, left.output, right.output)

  /** Returns the ordinary join over the rows of one batch. */
  def toJoin: Join = {
    val join = Join(left, right, joinType, condition, JoinHint.NONE)
    join.copyTagsFrom(this)
    join
  }

  override protected def withNewChildrenInternal(
      newLeft: LogicalPlan,
      newRight: LogicalPlan): LookupJoin = copy(left = newLeft, right = newRight)
}

/** Marks a table of a lookup join: changes of the table do not change earlier join results. */
case class LookupTable(child: LogicalPlan) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): LookupTable =
    copy(child = newChild)
}

/**
 * Marks a table on the right of a lateral join, to be read as of a time. Present only in analysis.
 *
 * @param at
 *   the time, a value of the left row
 */
case class TableAsOf(at: Expression, child: LogicalPlan) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): TableAsOf =
    copy(child = newChild)
}
