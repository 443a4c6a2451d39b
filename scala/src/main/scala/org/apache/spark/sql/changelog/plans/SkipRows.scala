// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OrderPreservingUnaryNode}

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
