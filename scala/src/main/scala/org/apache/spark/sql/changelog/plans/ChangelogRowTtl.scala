// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

import org.apache.spark.sql.changelog.RowKind

/**
 * Takes back rows that nothing has changed for some time.
 *
 * @param ttl
 *   in ms
 * @param placedBy
 *   the columns rows are shuffled by; equal rows agree on them
 * @param inputKind
 *   the row kind of `child`, none if it is insert-only
 * @param outputKind
 *   the row kind of the result
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogRowTtl(
    ttl: Long,
    placedBy: Seq[Attribute],
    inputKind: Option[Attribute],
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  override def output: Seq[Attribute] =
    RowKind.without(inputKind, child.output) :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  /** A row is kept with all its columns. */
  @transient override lazy val references: AttributeSet = child.outputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogRowTtl =
    copy(child = newChild)
}
