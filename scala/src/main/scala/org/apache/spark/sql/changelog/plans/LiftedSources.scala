// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{
  LeafNode, LogicalPlan, OrderPreservingUnaryNode
}

/**
 * Holds the sources of subqueries beside the rows of `query`, from analysis to optimization.
 *
 * Spark passes a batch's rows to streams that are nodes of a plan, and ignores streams within
 * expressions.
 *
 * @param query
 *   the input of the node with the subqueries
 * @param sources
 *   the lifted sources; a [[LiftedSource]] replaces each in its subquery
 */
case class LiftedSources(query: LogicalPlan, sources: Seq[LogicalPlan]) extends LogicalPlan {

  override def children: Seq[LogicalPlan] = query +: sources

  override def output: Seq[Attribute] = query.output

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): LiftedSources =
    copy(query = newChildren.head, sources = newChildren.tail)
}

/**
 * Placeholder for a lifted source in a subquery.
 *
 * @param index
 *   position among the [[LiftedSources]] below the node with the subquery
 * @param source
 *   the lifted source as analyzed, for comparisons of subqueries
 */
case class LiftedSource(index: Int, source: FromChangelog) extends LeafNode {

  override def output: Seq[Attribute] = source.output

  override def simpleString(maxFields: Int): String = s"LiftedSource $index"

  override protected def doCanonicalize(): LogicalPlan = source.canonicalized
}

/** Renames columns to the ids and names of given columns. */
object RenameColumns {
  def apply(columns: Seq[Attribute], wanted: Seq[Attribute]): Seq[NamedExpression] =
    wanted.zip(columns).map { case (other, column) =>
      if (other.exprId == column.exprId) column
      else Alias(column, other.name)(other.exprId, other.qualifier)
    }
}

/**
 * `OFFSET` below `to_changelog`. Spark rejects its own node in every stream.
 *
 * [[SkipRows]] becomes `OFFSET` again when a batch is optimized.
 *
 * @param count
 *   the number of skipped rows
 */
case class SkipRows(count: Expression, child: LogicalPlan) extends OrderPreservingUnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): SkipRows =
    copy(child = newChild)
}

/**
 * SourceOfPlan: a data source with the rows of a plan. Two are equal if their plans are equal.
 * Further data sources are compared by identity, because each instance may have separate rows.
 */
trait SourceOfPlan
