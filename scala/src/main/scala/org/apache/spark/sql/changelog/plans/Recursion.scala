// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{
  LeafNode, LogicalPlan, Statistics, UnaryNode, UnionLoop
}

/**
 * A recursive query over changing tables.
 *
 * @param loop
 *   the recursion for Spark, over [[RecursionInput]]s
 * @param inputs
 *   the changing inputs outside the recursion
 */
case class RecursiveQuery(loop: UnionLoop, inputs: Seq[LogicalPlan]) extends LogicalPlan {
  override def children: Seq[LogicalPlan] = inputs

  override val output: Seq[Attribute] = loop.output

  override def producedAttributes: AttributeSet = outputSet

  /** Inputs are read by position, so no column may be pruned. */
  @transient override lazy val references: AttributeSet = inputSet

  override def innerChildren: Seq[QueryPlan[_]] = Seq(loop)

  override def simpleString(maxFields: Int): String = nodeName

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): RecursiveQuery = copy(inputs = newChildren)
}

/** The rows of an input of a [[RecursiveQuery]], as read by its recursion. */
case class RecursionInput(number: Int, override val output: Seq[Attribute]) extends LeafNode {
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
}

/**
 * Runs a recursion twice, over the new and the old rows of its inputs.
 *
 * @param loop
 *   the recursion, over [[RecursionInput]]s
 * @param inputs
 *   for each input, the positions of its columns in replayed rows
 * @param kind
 *   the version of a result: `-D` for the old one, `+I` for the new one
 * @param child
 *   a replay of the rows of both versions; each row begins with the number of its input
 */
case class ChangelogRecursion(
    loop: UnionLoop,
    inputs: Seq[Seq[Int]],
    kind: Attribute,
    child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = loop.output :+ kind

  override def producedAttributes: AttributeSet = outputSet

  /** Replayed rows are read by position, so no column may be pruned. */
  @transient override lazy val references: AttributeSet = child.outputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogRecursion =
    copy(child = newChild)
}
