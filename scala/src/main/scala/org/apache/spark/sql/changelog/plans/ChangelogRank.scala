// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

import org.apache.spark.sql.changelog.UpdateKind

/**
 * Keeps the rows of each partition whose rank lies within bounds, and emits what a batch does to
 * them.
 *
 * @param partition
 *   the columns rows are ranked by themselves by; equal exactly if their bytes are
 * @param order
 *   the better row first; empty if any rows will do
 * @param start
 *   the lowest rank kept, from 1
 * @param end
 *   the highest rank kept, inclusive
 * @param rankNumber
 *   the column with the rank, if it is part of the result
 * @param strategy
 *   what is kept of the rows beyond the last rank
 * @param replaceBy
 *   for [[RankStrategy.UpdateFast]], the key by which a row replaces the one before
 * @param bySlot
 *   whether a rank's old and new row are an update; else rows that agree on `pairBy` are
 * @param pairBy
 *   a key of the rows, if there is one
 * @param updateKind
 *   whether the consumer wants before images
 * @param inputKind
 *   the row kind of `child`, none if it is insert-only
 * @param outputKind
 *   the row kind of the result
 * @param operatorId
 *   identifies the operator's state within the query
 * @param ttl
 *   how long entries are kept that nothing changes, in ms, if a hint says so
 */
case class ChangelogRank(
    function: RankFunction,
    partition: Seq[Attribute],
    order: Seq[SortOrder],
    start: Long,
    end: Long,
    rankNumber: Option[Attribute],
    strategy: RankStrategy,
    replaceBy: Seq[Attribute],
    bySlot: Boolean,
    pairBy: Option[Seq[Attribute]],
    updateKind: UpdateKind,
    inputKind: Option[Attribute],
    outputKind: Attribute,
    operatorId: Long,
    ttl: Option[Long],
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  /** The columns of a row, without its kind and its rank. */
  def columns: Seq[Attribute] =
    child.output.filterNot(column => inputKind.exists(_.exprId == column.exprId))

  override def output: Seq[Attribute] = (columns ++ rankNumber) :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(rankNumber.toSeq :+ outputKind)

  /** A row is kept with all its columns. */
  @transient override lazy val references: AttributeSet = child.outputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogRank =
    copy(child = newChild)
}
