// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.output

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.plans.ExplainNode

/** Marks the root of a changelog query, for EXPLAIN; the rows pass through untouched. */
case class ChangelogOutputExec(explained: ExplainNode, child: SparkPlan) extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override def simpleString(maxFields: Int): String = s"ChangelogOutput ${explained.mode}"

  override protected def doExecute(): RDD[InternalRow] = {
    val started = castToImpl(session)
    AssignStateInfo.checkIds(started)
    if (AssignStateInfo.firstOfRun(started).isDefined) GeneratedClasses.warn(this)
    child.execute()
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogOutputExec =
    copy(child = newChild)
}
