// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.util.concurrent.TimeUnit.NANOSECONDS

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.{
  ColumnarRule, ExpandExec, FilterExec, GenerateExec, LeafExecNode, LocalTableScanExec,
  ProjectExec, SortExec, SparkPlan, UnaryExecNode, UnionExec
}
import org.apache.spark.{SparkException, TaskContext}

import org.apache.spark.sql.changelog.compat.SparkRDDs
import org.apache.spark.sql.changelog.execution.output.ChangelogOutputExec

/**
 * Reduces the stages of a changelog query to the work and the serialized data that a batch needs.
 *
 * {{{
 *   ChangelogJoin                        ChangelogJoin
 *   :- Sort                              :- LazySort
 *   :  +- Exchange                       :  +- StageInput
 *   :     +- Scan                  =>    :     +- Exchange
 *   +- Sort                              :        +- Scan
 *      +- Exchange                       +- NoRows
 *         +- Scan of no rows
 * }}}
 * Runs after Spark has added exchanges and before code generation.
 */
object PrepareStages extends ColumnarRule {

  override def postColumnarTransitions: Rule[SparkPlan] = prepare

  private object prepare extends Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan =
      if (!plan.exists(_.isInstanceOf[ChangelogOutputExec])) plan
      else {
        plan.transformUp {
          case shuffle: ShuffleExchangeExec if isEmpty(shuffle.child) => noRows(shuffle)
          case shuffle: ShuffleExchangeLike if !shuffle.supportsColumnar =>
            StageInputExec(shuffle)
          case sort: SortExec if !sort.global =>
            if (sort.child.isInstanceOf[NoRowsExec]) noRows(sort)
            else LazySortExec(sort.sortOrder, sort.child)
        }
      }

    private def noRows(plan: SparkPlan): SparkPlan =
      NoRowsExec(plan.output, plan.outputPartitioning, plan.outputOrdering)

    /** Returns whether a plan emits no rows and has no side effect without rows. */
    private def isEmpty(plan: SparkPlan): Boolean = plan match {
      case scan: LocalTableScanExec => scan.rows.isEmpty
      case _: NoRowsExec => true
      case aggregate: BaseAggregateExec =>
        aggregate.groupingExpressions.nonEmpty && isEmpty(aggregate.child)
      case _: ProjectExec | _: FilterExec | _: GenerateExec | _: ExpandExec | _: LazySortExec |
          _: UnionExec =>
        plan.children.forall(isEmpty)
      case _ => false
    }
  }
}

/**
 * Stands above a shuffle, so that a serialized task holds only the columns of the plan below.
 *
 * A serialized operator, including Spark's sorts and aggregates, takes along its whole child plan down to the
 * sources. Without this node, the serialized size of a stage would grow with the query. In a small batch that
 * would be a large part of the work.
 */
case class StageInputExec(child: SparkPlan) extends PassesRows {

  override protected def doExecute(): RDD[InternalRow] = child.execute()

  /** Returns the node that Java serializes in place of this node. */
  private def writeReplace(): AnyRef = InputColumns(output)

  override protected def withNewChildInternal(newChild: SparkPlan): StageInputExec =
    copy(child = newChild)
}

/** Replaces the input of a stage in its serialized tasks. */
case class InputColumns(output: Seq[Attribute]) extends LeafExecNode {

  override protected def doExecute(): RDD[InternalRow] =
    throw SparkException.internalError(s"$nodeName is executed")
}

/** Replaces a shuffle without rows in a batch: the same partitions, all empty. */
case class NoRowsExec(
    output: Seq[Attribute],
    override val outputPartitioning: Partitioning,
    override val outputOrdering: Seq[SortOrder])
    extends LeafExecNode {

  override protected def doExecute(): RDD[InternalRow] =
    SparkRDDs.empty(sparkContext, outputPartitioning.numPartitions)
}

/** A node that passes the rows of its child on, in the same partitions and order. */
trait PassesRows extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
}

/**
 * Sorts the rows of each partition as Spark does, but creates the sorter only for two or more rows.
 *
 * Most partitions of a small batch have at most one row. A sorter, its comparator and its prefix comparator,
 * whose code is looked up by source text, would cost more than the rest of the partition's work.
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
        // reading a second row may overwrite the first
        val first = rows.next().copy()
        if (rows.hasNext) sorted(Iterator.single(first) ++ rows) else Iterator.single(first)
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): LazySortExec =
    copy(child = newChild)
}
