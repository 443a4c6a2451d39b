// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

import org.apache.spark.sql.changelog.RowKind

/**
 * Keeps the rows of each partition, and gives out the old and the new rows of the partitions that
 * change, for one of Spark's own operators to compute its old and its new result from.
 *
 * @param partition
 *   the columns rows are kept by; empty for one partition of all rows
 * @param order
 *   the order in which a partition's rows are given out; rows it finds equal come in the order of
 *   their columns
 * @param session
 *   the column with the session a row begins, as long as no other one reaches it, if a watermark can
 *   end sessions
 * @param dropsLate
 *   whether changes that could reach a session that has ended come too late; not so if an operator
 *   below has left out those that do
 * @param emitsClosed
 *   whether rows are given out once, when the watermark has passed their partition or session,
 *   and in no order
 * @param inputKind
 *   the row kind of `child`, none if it is insert-only
 * @param opening
 *   a column that is true for one further row at the start of each version, whose other columns
 *   are NULL; with it there is always a version, over no rows too
 * @param outputKind
 *   which version a row is of: `-D` for the old one, `+I` for the new one
 * @param operatorId
 *   identifies the operator's state within the query
 * @param placedBy
 *   the columns by which rows are spread over tasks, if not by all of `partition`
 */
case class ChangelogReplay(
    partition: Seq[Attribute],
    order: Seq[SortOrder],
    session: Option[Attribute],
    dropsLate: Boolean,
    emitsClosed: Boolean,
    inputKind: Option[Attribute],
    opening: Option[Attribute],
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan,
    placedBy: Option[Seq[Attribute]] = None)
    extends UnaryNode
    with KeepsState {

  /** The columns of rows. */
  def columns: Seq[Attribute] = {
    val rows = RowKind.without(inputKind, child.output)
    if (opening.isEmpty) rows else rows.map(_.withNullability(true))
  }

  override def output: Seq[Attribute] = columns ++ opening :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(opening.toSeq :+ outputKind)

  /** A row is kept with all its columns. */
  @transient override lazy val references: AttributeSet = child.outputSet

  /** Whole partitions come out, which Spark's operators for tables are right for. */
  override def isStreaming: Boolean = false

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogReplay =
    copy(child = newChild)
}
