// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

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
