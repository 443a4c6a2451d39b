// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{
  BinaryNode,
  Join,
  JoinHint,
  LogicalPlan,
  UnaryNode
}

import org.apache.spark.sql.changelog.RowKind

/**
 * Joins each left row with one right row, the last version at the time of the left row.
 *
 * Stands for a lateral join with the first row in order of time, and for Spark's `AsOfJoin`, from
 * analysis to rewriting; a plan is never executed with it.
 *
 * @param joinType
 *   `Inner`, or `LeftOuter` to keep left rows without a version
 * @param matchesNull
 *   for each part of the join key, whether NULL equals NULL
 * @param isForward
 *   whether the first version after the left row's time is meant instead
 * @param allowsEqual
 *   whether a version at that very time counts
 * @param ties
 *   which of several versions of one time comes first
 * @param condition
 *   what the version found must meet besides, or there is none
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

/**
 * One side of a temporal join.
 *
 * @param key
 *   its side of the join key, such that equal values have equal bytes
 * @param time
 *   the column its rows are in order of
 * @param kind
 *   the row kind, none if it is insert-only
 */
final case class TemporalSide(key: Seq[Expression], time: Attribute, kind: Option[Attribute])
    extends ParameterGroup

/**
 * Which version a left row of a temporal join gets, and when it comes out with it; see
 * [[TemporalJoin]].
 *
 * @param matchesNull
 *   for each part of the join key, whether NULL equals NULL
 * @param isForward
 *   whether the version is the first one after a row, not the last one before
 * @param allowsEqual
 *   whether a version may have the row's own time
 * @param ties
 *   which of several versions of one time is meant; it comes last
 * @param condition
 *   what a row and its version must meet besides
 * @param isTimed
 *   whether both times are event times, below whose watermark nothing changes
 * @param appends
 *   whether a left row comes out once, when the watermark has passed it
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
 * Joins each left row once, with the right rows that are there after its batch.
 *
 * Stands for a join with a [[LookupTable]] from analysis to rewriting; a plan is never executed with
 * it.
 */
case class LookupJoin(
    joinType: JoinType,
    condition: Option[Expression],
    left: LogicalPlan,
    right: LogicalPlan)
    extends BinaryNode {

  override def output: Seq[Attribute] = ChangelogJoin.output(joinType, left.output, right.output)

  /** The join it is of rows that come in one batch. */
  def toJoin: Join = {
    val join = Join(left, right, joinType, condition, JoinHint.NONE)
    join.copyTagsFrom(this)
    join
  }

  override protected def withNewChildrenInternal(
      newLeft: LogicalPlan,
      newRight: LogicalPlan): LookupJoin = copy(left = newLeft, right = newRight)
}

/** Marks a table whose changes are not to change what has been joined with it. */
case class LookupTable(child: LogicalPlan) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): LookupTable =
    copy(child = newChild)
}
