// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, LogicalPlan}

import org.apache.spark.sql.changelog.UpdateKind

/**
 * Joins two changelogs and emits what a batch does to the result.
 *
 * Whatever of this reads columns is an argument of its own, so that Spark sees it as it prunes and
 * renames columns below.
 *
 * @param leftKey
 *   the left side of the join key, such that equal values have equal bytes
 * @param matchesNull
 *   for each part of the join key, whether NULL equals NULL
 * @param condition
 *   what rows with equal join keys must meet besides
 * @param leftKind
 *   the row kind of `left`, none if it is insert-only
 * @param leftSide
 *   how left rows are kept
 * @param leftRowKey
 *   for [[JoinSide.RowByKey]], what tells left rows of one join key apart
 * @param leftTracksMatches
 *   whether left rows are kept with the number of their matches
 * @param leftReplaces
 *   whether a left row replaces the one with its key, the old one being left out
 * @param pairBy
 *   a key of the result: an old and a new row that agree on it are an update
 * @param deletes
 *   whether the consumer knows deletes; if not, a row goes with `-U`
 * @param updateKind
 *   whether the consumer wants before images
 * @param outputKind
 *   the row kind of the result
 * @param operatorId
 *   identifies the operator's state within the query
 * @param leftTtl
 *   how long left rows are kept that nothing changes, in ms, if a hint says so
 */
case class ChangelogJoin(
    joinType: JoinType,
    leftKey: Seq[Expression],
    rightKey: Seq[Expression],
    matchesNull: Seq[Boolean],
    condition: Option[Expression],
    leftKind: Option[Attribute],
    rightKind: Option[Attribute],
    leftSide: JoinSide,
    rightSide: JoinSide,
    leftRowKey: Seq[Expression],
    rightRowKey: Seq[Expression],
    leftTracksMatches: Boolean,
    rightTracksMatches: Boolean,
    leftReplaces: Boolean,
    rightReplaces: Boolean,
    pairBy: Option[Seq[Attribute]],
    deletes: Boolean,
    updateKind: UpdateKind,
    outputKind: Attribute,
    operatorId: Long,
    leftTtl: Option[Long],
    rightTtl: Option[Long],
    left: LogicalPlan,
    right: LogicalPlan)
    extends BinaryNode
    with KeepsState {

  override def output: Seq[Attribute] =
    ChangelogJoin.output(
      joinType,
      ChangelogJoin.columns(left.output, leftKind),
      ChangelogJoin.columns(right.output, rightKind)) :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind +: (joinType match {
    case ExistenceJoin(exists) => Seq(exists)
    case _ => Nil
  }))

  override protected def withNewChildrenInternal(
      newLeft: LogicalPlan,
      newRight: LogicalPlan): ChangelogJoin = copy(left = newLeft, right = newRight)
}

object ChangelogJoin {

  /** The columns of a side without its row kind. */
  def columns(side: Seq[Attribute], kind: Option[Attribute]): Seq[Attribute] =
    side.filterNot(column => kind.exists(_.exprId == column.exprId))

  /** The columns of the result, without a row kind. */
  def output(joinType: JoinType, left: Seq[Attribute], right: Seq[Attribute]): Seq[Attribute] =
    joinType match {
      case ExistenceJoin(exists) => left :+ exists
      case LeftExistence(_) => left
      case LeftOuter | LeftSingle => left ++ right.map(_.withNullability(true))
      case RightOuter => left.map(_.withNullability(true)) ++ right
      case FullOuter => (left ++ right).map(_.withNullability(true))
      case _ => left ++ right
    }
}
