// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/**
 * Rows of something that never changes, among rows that do: they are inserted in the first batch.
 *
 * @param child
 *   the static rows; read in the first batch only
 */
case class ChangelogStatic(child: LogicalPlan) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override def maxRows: Option[Long] = child.maxRows

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogStatic =
    copy(child = newChild)
}
