// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

import org.apache.spark.sql.changelog.UpdateKind

/**
 * Restores the before images of a feed that sends only the newest row per key.
 *
 * @param key
 *   the columns that identify a row
 * @param sequence
 *   columns that order the changes of one key; empty for arrival order
 * @param position
 *   the arrival order within the batch, which settles equal sequences
 * @param columns
 *   the columns of the table
 * @param inputKind
 *   the row kind of `child`
 * @param updateKind
 *   whether the consumer wants before images
 * @param outputKind
 *   the row kind of the result
 * @param operatorId
 *   identifies the operator's state within the query
 * @param unavailable
 *   the names of columns whose values a change did not send; NULL for none
 * @param hasSnapshot
 *   whether rows of a snapshot come before all changes, with positions below 0
 */
case class ChangelogNormalize(
    key: Seq[Attribute],
    sequence: Seq[Attribute],
    position: Attribute,
    columns: Seq[Attribute],
    inputKind: Attribute,
    updateKind: UpdateKind,
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan,
    unavailable: Option[Attribute] = None,
    hasSnapshot: Boolean = false)
    extends UnaryNode
    with KeepsState {

  override def output: Seq[Attribute] = columns :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogNormalize =
    copy(child = newChild)
}
