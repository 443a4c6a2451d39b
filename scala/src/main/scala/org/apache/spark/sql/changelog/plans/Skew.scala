// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExpressionSet, Literal, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.trees.TreePattern.{TreePattern, UNRESOLVED_HINT}

/**
 * Says which values of some columns of `child` many of its rows have: a `SKEW` hint in its place in
 * the query.
 *
 * {{{
 *   SELECT /*+ SKEW('b', 'auction', 1007) */ ...                  Join b.auction = a.id
 *   FROM bids b JOIN auctions a ON b.auction = a.id      =>       :- Skew [auction] [1007]
 *                                                                 :  +- SubqueryAlias b
 *                                                                 +- SubqueryAlias a
 * }}}
 *
 * @param names
 *   the columns as the hint has them
 * @param columns
 *   the columns, once `child` is resolved
 * @param values
 *   the values, with one part for each column; none if all values are meant
 * @param problem
 *   what is wrong with the hint, which matters below `to_changelog` only
 * @param isFollowed
 *   whether a join below does as it says
 */
case class Skew(
    names: Seq[Seq[String]],
    columns: Seq[Attribute],
    values: Seq[Seq[Literal]],
    problem: Option[AnalysisException],
    isFollowed: Boolean,
    child: LogicalPlan)
    extends UnaryNode {

  override lazy val resolved: Boolean =
    childrenResolved && (problem.isDefined || columns.nonEmpty)

  override def output: Seq[Attribute] = child.output

  override def maxRows: Option[Long] = child.maxRows

  override def maxRowsPerPartition: Option[Long] = child.maxRowsPerPartition

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override lazy val distinctKeys: Set[ExpressionSet] = child.distinctKeys

  // so that it is resolved where hints are
  override protected val nodePatterns: Seq[TreePattern] = Seq(UNRESOLVED_HINT)

  override protected def doCanonicalize(): LogicalPlan = child.canonicalized

  override protected def withNewChildInternal(newChild: LogicalPlan): Skew =
    copy(child = newChild)
}
