// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/**
 * Reads its input to the end, even if its consumer stops before: operators that keep state have
 * taken in a batch only then. A join of Spark's stops when its other side has no more rows.
 */
case class ChangelogDrain(child: LogicalPlan) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogDrain =
    copy(child = newChild)
}
