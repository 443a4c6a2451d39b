// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/**
 * Counts the rows of each key, and lets all changes pass.
 *
 * @param key
 *   the columns that are said to identify a row
 * @param columns
 *   the columns of the table
 * @param kind
 *   the row kind of `child`, none if every row is an insert
 * @param check
 *   what to do where a key has several rows
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogUnique(
    key: Seq[Attribute],
    columns: Seq[Attribute],
    kind: Option[Attribute],
    check: KeyCheck,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogUnique =
    copy(child = newChild)
}
