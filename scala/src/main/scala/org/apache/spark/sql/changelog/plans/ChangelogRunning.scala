// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/**
 * Computes functions over all rows of a partition up to each row, where rows come in the order of
 * time from batch to batch.
 *
 * @param partition
 *   the columns that make a partition
 * @param time
 *   no row has one that is not later than all of the batches before
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogRunning(
    partition: Seq[Attribute],
    time: Attribute,
    functions: RunningFunctions,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  override def output: Seq[Attribute] = child.output ++ functions.results.map(_.toAttribute)

  override def producedAttributes: AttributeSet =
    AttributeSet(functions.buffers ++ functions.results.map(_.toAttribute))

  /** Ties are settled by all columns of a row. */
  @transient override lazy val references: AttributeSet = child.outputSet

  override def isStreaming: Boolean = false

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogRunning =
    copy(child = newChild)
}
