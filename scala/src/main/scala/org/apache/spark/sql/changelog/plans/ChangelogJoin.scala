// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, LogicalPlan}

import org.apache.spark.sql.changelog.RowKind

/**
 * Joins two changelogs and emits what a batch does to the result.
 *
 * Whatever of this reads columns is an argument of its own or within a [[ParameterGroup]], so that
 * Spark sees it as it prunes and renames columns below.
 *
 * @param matchesNull
 *   for each part of the join key, whether NULL equals NULL
 * @param condition
 *   what rows with equal join keys must meet besides
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogJoin(
    joinType: JoinType,
    leftSide: JoinedSide,
    rightSide: JoinedSide,
    matchesNull: Seq[Boolean],
    condition: Option[Expression],
    result: JoinResult,
    operatorId: Long,
    left: LogicalPlan,
    right: LogicalPlan)
    extends BinaryNode
    with KeepsState {

  override def output: Seq[Attribute] =
    ChangelogJoin.output(
      joinType,
      RowKind.without(leftSide.kind, left.output),
      RowKind.without(rightSide.kind, right.output)) :+ result.kind

  override def producedAttributes: AttributeSet = AttributeSet(result.kind +: (joinType match {
    case ExistenceJoin(exists) => Seq(exists)
    case _ => Nil
  }))

  override protected def withNewChildrenInternal(
      newLeft: LogicalPlan,
      newRight: LogicalPlan): ChangelogJoin = copy(left = newLeft, right = newRight)
}

object ChangelogJoin {

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
