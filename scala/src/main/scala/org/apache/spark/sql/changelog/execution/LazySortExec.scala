// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.util.concurrent.TimeUnit.NANOSECONDS

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.{SortExec, SparkPlan, UnaryExecNode}

import org.apache.spark.sql.changelog.compat.SparkRDDs

/**
 * Sorts the rows of each partition as Spark does, and makes what that needs when there is something to sort.
 *
 * Most partitions of a small batch have one row or none. A sorter, its comparison and its prefixes, for
 * which code is looked up by its text, would cost them more than all they do besides.
 */
case class LazySortExec(sortOrder: Seq[SortOrder], child: SparkPlan) extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override def outputOrdering: Seq[SortOrder] = sortOrder

  override def outputPartitioning: Partitioning = child.outputPartitioning

  @transient private lazy val sparkSort = SortExec(sortOrder, global = false, child)

  override lazy val metrics: Map[String, SQLMetric] = sparkSort.metrics

  override protected def doExecute(): RDD[InternalRow] = {
    val sort = sparkSort
    val (sortTime, peakMemory, spillSize) =
      (longMetric("sortTime"), longMetric("peakMemory"), longMetric("spillSize"))

    def sorted(rows: Iterator[InternalRow]): Iterator[InternalRow] = {
      val sorter = sort.createSorter()
      val task = TaskContext.get().taskMetrics()
      val spilledBefore = task.memoryBytesSpilled
      val result = sorter.sort(rows.asInstanceOf[Iterator[UnsafeRow]])
      sortTime += NANOSECONDS.toMillis(sorter.getSortTimeNanos)
      peakMemory += sorter.getPeakMemoryUsage
      spillSize += task.memoryBytesSpilled - spilledBefore
      task.incPeakExecutionMemory(sorter.getPeakMemoryUsage)
      result
    }

    SparkRDDs.map(child.execute()) { rows =>
      if (!rows.hasNext) Iterator.empty
      else {
        // to ask for a second row may overwrite it
        val first = rows.next().copy()
        if (rows.hasNext) sorted(Iterator.single(first) ++ rows) else Iterator.single(first)
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): LazySortExec =
    copy(child = newChild)
}
