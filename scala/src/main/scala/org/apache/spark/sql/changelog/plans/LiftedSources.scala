// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{
  LeafNode,
  LogicalPlan,
  OrderPreservingUnaryNode
}

/**
 * Holds the sources that subqueries read, beside the rows of `query`, from analysis to optimization.
 *
 * Spark gives a batch's rows to the streams that are nodes of a plan. It looks into no expression.
 *
 * @param query
 *   the input of the node that has the subqueries
 * @param sources
 *   what stands in them as a [[LiftedSource]]
 */
case class LiftedSources(query: LogicalPlan, sources: Seq[LogicalPlan]) extends LogicalPlan {

  override def children: Seq[LogicalPlan] = query +: sources

  override def output: Seq[Attribute] = query.output

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): LiftedSources =
    copy(query = newChildren.head, sources = newChildren.tail)
}

/**
 * Stands in a subquery for a source that is lifted out of it.
 *
 * @param index
 *   its place among the [[LiftedSources]] below the node that has the subquery
 * @param source
 *   what is lifted, as it was analyzed. By that two subqueries are known to be the same
 */
case class LiftedSource(index: Int, source: FromChangelog) extends LeafNode {

  override def output: Seq[Attribute] = source.output

  override def simpleString(maxFields: Int): String = s"LiftedSource $index"

  override protected def doCanonicalize(): LogicalPlan = source.canonicalized
}

/** Gives columns the ids and names that others have, one for one. */
object RenameColumns {
  def apply(columns: Seq[Attribute], wanted: Seq[Attribute]): Seq[NamedExpression] =
    wanted.zip(columns).map { case (other, column) =>
      if (other.exprId == column.exprId) column
      else Alias(column, other.name)(other.exprId, other.qualifier)
    }
}

/**
 * `OFFSET` below `to_changelog`: Spark refuses its own node in whatever stream it meets one.
 *
 * Is `OFFSET` again when a batch is optimized.
 *
 * @param count
 *   how many rows are skipped
 */
case class SkipRows(count: Expression, child: LogicalPlan) extends OrderPreservingUnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): SkipRows =
    copy(child = newChild)
}

/**
 * What gives a stream the rows of a plan. Two are the same if their plans are: others are told apart by which
 * was made, as a stream gives each of its makers rows of their own.
 */
trait SourceOfPlan
