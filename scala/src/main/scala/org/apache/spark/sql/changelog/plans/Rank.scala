// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/** Which rank decides, and so how ties are treated. */
sealed abstract class RankFunction(override val toString: String)

object RankFunction {
  case object RowNumber extends RankFunction("row_number")
  case object RankWithGaps extends RankFunction("rank")
  case object DenseRank extends RankFunction("dense_rank")
}

/**
 * Keeps the rows of each partition whose rank lies within constant bounds.
 *
 * Stands for a filter on a ranking window function, and for `LIMIT`, `OFFSET` and
 * `ORDER BY ... LIMIT` (no partition; no order for a bare `LIMIT`). Present only between
 * normalization and rewriting; a plan is never executed with it.
 *
 * @param start
 *   the lowest rank kept, from 1
 * @param end
 *   the highest rank kept, inclusive
 * @param rankNumber
 *   the column with the rank, if the query reads it
 */
case class Rank(
    function: RankFunction,
    partitionBy: Seq[Expression],
    orderBy: Seq[SortOrder],
    start: Long,
    end: Long,
    rankNumber: Option[Attribute],
    child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = child.output ++ rankNumber

  override def producedAttributes: AttributeSet = AttributeSet(rankNumber)

  override protected def withNewChildInternal(newChild: LogicalPlan): Rank =
    copy(child = newChild)
}

/**
 * Keeps the rows of each partition whose rank lies within bounds, and emits what a batch does to
 * them.
 *
 * @param outputKind
 *   the row kind of the result
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogRank(
    ranking: Ranking,
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  /** The columns of a row, without its kind and its rank. */
  def columns: Seq[Attribute] = RowKind.without(ranking.inputKind, child.output)

  override def output: Seq[Attribute] = (columns ++ ranking.number) :+ outputKind

  override def producedAttributes: AttributeSet =
    AttributeSet(ranking.number.toSeq :+ outputKind)

  /** A row is kept with all its columns. */
  @transient override lazy val references: AttributeSet = child.outputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogRank =
    copy(child = newChild)
}

/**
 * Which rows of each partition a [[ChangelogRank]] keeps, and how it emits them.
 *
 * @param partition
 *   the columns rows are ranked by themselves by; equal exactly if their bytes are
 * @param order
 *   the better row first; empty if any rows will do
 * @param start
 *   the lowest rank kept, from 1
 * @param end
 *   the highest rank kept, inclusive
 * @param number
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
 *   the row kind of the rows that are ranked, none if they only come
 */
final case class Ranking(
    function: RankFunction,
    partition: Seq[Attribute],
    order: Seq[SortOrder],
    start: Long,
    end: Long,
    number: Option[Attribute],
    strategy: RankStrategy,
    replaceBy: Seq[Attribute],
    bySlot: Boolean,
    pairBy: Option[Seq[Attribute]],
    updateKind: UpdateKind,
    inputKind: Option[Attribute])
    extends ParameterGroup

/** What a rank keeps of the rows it does not show. */
sealed abstract class RankStrategy(override val toString: String)

object RankStrategy {

  /** Nothing, nor what it shows: the first rows to come stay, so that it is enough to count. */
  case object FirstCome extends RankStrategy("first-come")

  /** Nothing: over rows that only come, a row beyond the last rank never gets a better one. */
  case object AppendFast extends RankStrategy("append-fast")

  /** The earliest row until it is certain: then it is emitted, and only that is remembered. */
  case object Earliest extends RankStrategy("earliest")

  /** Nothing: a row that is updated only gets better, and then comes again. */
  case object UpdateFast extends RankStrategy("update-fast")

  /** All rows, since those that are shown may go. */
  case object Retract extends RankStrategy("retract")
}
