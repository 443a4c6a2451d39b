// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnionLoop}

/**
 * A recursive query over tables that change.
 *
 * @param loop
 *   the recursion as Spark runs it, over [[RecursionInput]]s
 * @param inputs
 *   the parts of it that change and are no part of the recursion
 */
case class RecursiveQuery(loop: UnionLoop, inputs: Seq[LogicalPlan]) extends LogicalPlan {
  override def children: Seq[LogicalPlan] = inputs

  override val output: Seq[Attribute] = loop.output

  override def producedAttributes: AttributeSet = outputSet

  /** Inputs are read by position, so that none of their columns can go. */
  @transient override lazy val references: AttributeSet = inputSet

  override def innerChildren: Seq[QueryPlan[_]] = Seq(loop)

  override def simpleString(maxFields: Int): String = nodeName

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): RecursiveQuery = copy(inputs = newChildren)
}
