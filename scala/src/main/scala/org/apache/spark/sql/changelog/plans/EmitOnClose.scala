// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/**
 * Gives each row once, when the watermark has passed its time. Present only between inference and
 * rewriting; a plan is never executed with it.
 *
 * @param times
 *   event times of a row, each a timestamp. The row's time is the latest of those that are not NULL
 * @param delays
 *   what is added to each of them, in ms
 */
case class EmitOnClose(times: Seq[Expression], delays: Seq[Long], child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): EmitOnClose =
    copy(child = newChild)
}
