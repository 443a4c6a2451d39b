// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/**
 * Nets a batch's changes so that one change per key is left.
 *
 * @param key
 *   the columns by which changes are netted; all columns if rows have no key
 * @param pairs
 *   whether a row that goes and one that comes under the same key are an update
 * @param replaces
 *   whether old rows are left out, so that a `+U` alone is an update
 * @param inputKind
 *   the row kind of `child`
 * @param outputKind
 *   the row kind of the result
 * @param inPlace
 *   whether only changes are netted that meet in a task as it is: what is left may cancel out yet
 */
case class ChangelogConsolidate(
    key: Seq[Attribute],
    pairs: Boolean,
    replaces: Boolean,
    inputKind: Attribute,
    outputKind: Attribute,
    child: LogicalPlan,
    inPlace: Boolean = false)
    extends UnaryNode {

  override def output: Seq[Attribute] =
    child.output.filterNot(_.exprId == inputKind.exprId) :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogConsolidate =
    copy(child = newChild)
}
