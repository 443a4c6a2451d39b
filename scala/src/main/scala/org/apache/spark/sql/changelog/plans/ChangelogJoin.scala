// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, LogicalPlan}

import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

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

/**
 * One side of a join: what its rows are joined by, and how they are kept.
 *
 * @param key
 *   its side of the join key, such that equal values have equal bytes
 * @param kind
 *   the row kind, none if it is insert-only
 * @param form
 *   how its rows are kept
 * @param rowKey
 *   for [[SideForm.RowByKey]], what tells its rows of one join key apart
 * @param tracksMatches
 *   whether its rows are kept with the number of their matches
 * @param replaces
 *   whether a row replaces the one with its key, the old one being left out
 */
final case class JoinedSide(
    key: Seq[Expression],
    kind: Option[Attribute],
    form: SideForm,
    rowKey: Seq[Expression],
    tracksMatches: Boolean,
    replaces: Boolean)
    extends ParameterGroup

/** How the rows of one side of a join are kept under their join key, said as EXPLAIN says it. */
sealed abstract class SideForm(override val toString: String)

object SideForm {

  /** Its rows are never looked up: nothing is kept. */
  case object Nothing extends SideForm("nothing")

  /** The join key holds a key of the side: `join key -> row`. */
  case object OneRow extends SideForm("one row per join key")

  /** The side has another key: `join key, key -> row`. */
  case object RowByKey extends SideForm("row by key")

  /** The side has no key: `join key, row -> count`. */
  case object RowCount extends SideForm("row count")

  /** The side has no key, and rows only come: `join key, batch -> rows`. */
  case object RowList extends SideForm("rows by batch")

  /** Only whether there are rows matters: `join key -> count`. */
  case object KeyCount extends SideForm("key count")
}

/**
 * How a join emits what a batch does to its result.
 *
 * @param pairBy
 *   a key of the result: an old and a new row that agree on it are an update
 * @param deletes
 *   whether the consumer knows deletes; if not, a row goes with `-U`
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
