// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.shared

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning, Partitioning, SinglePartition
}
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan, UnaryExecNode}

import org.apache.spark.sql.changelog.compat.StatePlacement
import org.apache.spark.sql.changelog.microbatch.SharedChanges
import org.apache.spark.sql.changelog.plans.SharedPart

/**
 * Executes a [[org.apache.spark.sql.changelog.plans.SharedPart]]. Its operators run in the tasks that write a
 * shuffle, once for all readers of the shuffle.
 *
 * @param child
 *   the shuffle
 */
case class SharedPartExec(changes: SharedChanges, child: SparkPlan) extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def simpleString(maxFields: Int): String = s"SharedPart $changes"

  override protected def doPrepare(): Unit = changes.computedBy(this)

  override protected def doExecute(): RDD[InternalRow] = child.execute()

  override protected def withNewChildInternal(newChild: SparkPlan): SharedPartExec =
    copy(child = newChild)
}

object SharedPartExec {

  /** Returns the distribution of a part's rows to its readers. */
  def partitioning(placedBy: Seq[Attribute], numPartitions: Int): Partitioning =
    if (placedBy.isEmpty) SinglePartition else HashPartitioning(placedBy, numPartitions)

  def apply(part: SharedPart, numPartitions: Int, child: SparkPlan): SharedPartExec = {
    val placed = partitioning(part.placedBy, numPartitions)
    SharedPartExec(part.changes, StatePlacement.shuffle(placed, child))
  }
}

/** Executes a [[org.apache.spark.sql.changelog.plans.SharedReading]]: reads the shuffle again. */
case class SharedReadingExec(
    changes: SharedChanges,
    override val outputPartitioning: Partitioning,
    override val output: Seq[Attribute])
    extends LeafExecNode {

  override def simpleString(maxFields: Int): String = s"SharedReading $changes"

  override protected def doExecute(): RDD[InternalRow] = changes.part.execute()
}
