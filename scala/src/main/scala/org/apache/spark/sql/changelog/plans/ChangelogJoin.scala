// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, LogicalPlan}

import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/**
 * Joins two changelogs and emits the changes of the result.
 *
 * Every parameter that reads columns is an argument of the node, or part of a [[ParameterGroup]].
 * Spark then sees the columns when it prunes and renames columns below.
 *
 * @param matchesNull
 *   for each part of the join key, whether NULL equals NULL
 * @param condition
 *   a further condition on rows with equal join keys
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

  /** Returns the columns of the result, without a row kind. */
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

/**
 * A side of a join: the join key, and the stored form of rows.
 *
 * @param key
 *   the side's join key, with equal bytes for equal values
 * @param kind
 *   the row kind, or None for an insert-only side
 * @param form
 *   the stored form of rows
 * @param rowKey
 *   for [[SideForm.RowByKey]], the columns that distinguish rows of one join key
 * @param tracksMatches
 *   whether rows are stored with the number of their matches
 * @param replaces
 *   whether a row replaces the row with an equal key, without a before image
 */
final case class JoinedSide(
    key: Seq[Expression],
    kind: Option[Attribute],
    form: SideForm,
    rowKey: Seq[Expression],
    tracksMatches: Boolean,
    replaces: Boolean)
    extends ParameterGroup

/** The stored form of one side's rows under a join key, in EXPLAIN's words. */
sealed abstract class SideForm(override val toString: String)

object SideForm {

  /** Rows are never looked up, and nothing is stored. */
  case object Nothing extends SideForm("nothing")

  /** The join key contains an upsert key of the side: `join key -> row`. */
  case object OneRow extends SideForm("one row per join key")

  /** The side has another upsert key: `join key, key -> row`. */
  case object RowByKey extends SideForm("row by key")

  /** The side has no upsert key: `join key, row -> count`. */
  case object RowCount extends SideForm("row count")

  /** The side is insert-only without an upsert key: `join key, batch -> rows`. */
  case object RowList extends SideForm("rows by batch")

  /** Only the existence of rows matters: `join key -> count`. */
  case object KeyCount extends SideForm("key count")
}

/**
 * The form of a join's changes.
 *
 * @param pairBy
 *   a key of the result: a deleted and an inserted row with an equal key are an update
 * @param deletes
 *   whether the consumer supports deletes; if not, a deleted row is emitted as `-U`
 * @param updateKind
 *   whether the consumer wants before images
 * @param kind
 *   the row kind of the result
 */
final case class JoinResult(
    pairBy: Option[Seq[Attribute]],
    deletes: Boolean,
    updateKind: UpdateKind,
    kind: Attribute)
    extends ParameterGroup
