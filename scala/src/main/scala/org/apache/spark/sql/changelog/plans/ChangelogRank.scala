// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

import org.apache.spark.sql.changelog.RowKind

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
