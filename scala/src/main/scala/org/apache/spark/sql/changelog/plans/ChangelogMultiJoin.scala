// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.UpdateKind

/**
 * Joins several changelogs on one key and emits what a batch does to the result.
 *
 * Whatever of this reads columns is an argument of its own, as in [[ChangelogJoin]]. What is said
 * of each input stands in the order of `children`.
 *
 * @param keys
 *   each input's side of the join key, such that equal values have equal bytes
 * @param matchesNull
 *   for each part of the join key, whether NULL equals NULL
 * @param conditions
 *   what rows with equal join keys must meet besides
 * @param kinds
 *   the row kinds of the inputs that are not insert-only; Spark sees no columns in options in a list
 * @param sides
 *   how the rows of each input are kept
 * @param rowKeys
 *   for [[JoinSide.RowByKey]], what tells rows of one join key apart
 * @param replaces
 *   whether a row replaces the one with its key, the old one being left out
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
 */
case class ChangelogMultiJoin(
    keys: Seq[Seq[Expression]],
    matchesNull: Seq[Boolean],
    conditions: Seq[Expression],
    kinds: Seq[Attribute],
    sides: Seq[JoinSide],
    rowKeys: Seq[Seq[Expression]],
    replaces: Seq[Boolean],
    pairBy: Option[Seq[Attribute]],
    deletes: Boolean,
    updateKind: UpdateKind,
    outputKind: Attribute,
    operatorId: Long,
    children: Seq[LogicalPlan])
    extends LogicalPlan
    with KeepsState {

  override def output: Seq[Attribute] =
    children.flatMap(input => ChangelogJoin.columns(input.output, kind(input))) :+ outputKind

  /** The row kind of an input, none if it is insert-only. */
  def kind(input: LogicalPlan): Option[Attribute] = kinds.find(input.outputSet.contains)

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): ChangelogMultiJoin = copy(children = newChildren)
}
