// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.SparkException
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan}

/**
 * Stands above a shuffle, so that tasks get no more of what is below than its columns.
 *
 * An operator that goes to tasks, as many do, Spark's sorts and aggregates among them, takes along
 * all that is below it, down to the sources. So what is written and read for a stage of a batch
 * would grow with the query, and of a small batch it would be a large part of the work.
 */
case class StageInputExec(child: SparkPlan) extends PassesRows {

  override protected def doExecute(): RDD[InternalRow] = child.execute()

  /** What is written, as Java's serialization asks for it. */
  private def writeReplace(): AnyRef = InputColumns(output)

  override protected def withNewChildInternal(newChild: SparkPlan): StageInputExec =
    copy(child = newChild)
}

/** Stands for the input of a stage in its tasks. */
case class InputColumns(output: Seq[Attribute]) extends LeafExecNode {

  override protected def doExecute(): RDD[InternalRow] =
    throw SparkException.internalError(s"$nodeName is executed")
}
