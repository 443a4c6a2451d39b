// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

import org.apache.spark.sql.changelog.UpdateKind

/** The ranking function, which decides about ties. */
sealed abstract class RankFunction(override val toString: String)

object RankFunction {
  case object RowNumber extends RankFunction("row_number")
  case object RankWithGaps extends RankFunction("rank")
  case object DenseRank extends RankFunction("dense_rank")
}

/**
 * Keeps the rows of each partition whose rank lies within constant bounds.
 *
 * Stands for a filter on a ranking window function, and for `LIMIT`, `OFFSET` and `ORDER BY ... LIMIT` (no partition;
 * no order for a bare `LIMIT`). Present only between normalization and rewriting; a plan is never executed with it.
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
 * Keeps the rows of each partition with a rank within bounds, and emits the changes of the kept rows.
 */
case class ChangelogRank(
    ranking: Ranking,
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends StoresRows {

  override def inputKind: Option[Attribute] = ranking.inputKind

  override def output: Seq[Attribute] = columns ++ ranking.number :+ outputKind

  override def producedAttributes: AttributeSet =
    AttributeSet(ranking.number.toSeq :+ outputKind)

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogRank =
    copy(child = newChild)
}

/**
 * The rows kept by a [[ChangelogRank]], and the form of its changes.
 *
 * @param partition
 *   the partition columns, with equal bytes for equal values
 * @param order
 *   the order, better rows first; empty without an order
 * @param number
 *   the column with the rank, if it is part of the result
 * @param strategy
 *   the handling of rows beyond the last rank
 * @param replaceBy
 *   for [[RankStrategy.UpdateFast]], the key by which a row replaces its old version
 * @param bySlot
 *   whether the old and new row of a rank are an update; if not, rows with equal `pairBy` are
 * @param pairBy
 *   a key of the rows, if any
 * @param updateKind
 *   whether the consumer wants before images
 * @param inputKind
 *   the row kind of the input, or None for an insert-only input
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

/** The stored rows of a rank beside the visible rows. */
sealed abstract class RankStrategy(override val toString: String)

object RankStrategy {

  /** No rows: the first rows to arrive stay, so a count is enough. */
  case object FirstCome extends RankStrategy("first-come")

  /** No further rows: over insert-only input, a row beyond the last rank never improves. */
  case object AppendFast extends RankStrategy("append-fast")

  /** The earliest row until it is final. Afterwards, only the fact of its emission. */
  case object Earliest extends RankStrategy("earliest")

  /** No further rows: an update only improves a row, and sends the row again. */
  case object UpdateFast extends RankStrategy("update-fast")

  /** All rows, because visible rows may be deleted. */
  case object Retract extends RankStrategy("retract")
}
