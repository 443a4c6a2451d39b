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
  ColumnarRule,
  ExpandExec,
  FilterExec,
  GenerateExec,
  LeafExecNode,
  LocalTableScanExec,
  ProjectExec,
  SortExec,
  SparkPlan,
  UnaryExecNode,
  UnionExec
}
import org.apache.spark.{SparkException, TaskContext}

import org.apache.spark.sql.changelog.compat.SparkRDDs
import org.apache.spark.sql.changelog.execution.output.ChangelogOutputExec

/**
 * Lets the stages of a query that computes changes do, and be sent, no more than a batch needs.
 * {{{
 *   ChangelogJoin                        ChangelogJoin
 *   :- Sort                              :- LazySort
 *   :  +- Exchange                       :  +- StageInput
 *   :     +- Scan                  =>    :     +- Exchange
 *   +- Sort                              :        +- Scan
 *      +- Exchange                       +- NoRows
 *         +- Scan of no rows
 * }}}
 * Runs when exchanges are in place, before code is generated.
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

    /** Whether a plan gives no rows, and does nothing that is to be done without any. */
    private def isEmpty(plan: SparkPlan): Boolean = plan match {
      case LocalTableScanExec(_, rows, _) => rows.isEmpty
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

/** Stands for a shuffle to which nothing comes in a batch: its partitions, without rows. */
case class NoRowsExec(
    output: Seq[Attribute],
    override val outputPartitioning: Partitioning,
    override val outputOrdering: Seq[SortOrder])
    extends LeafExecNode {

  override protected def doExecute(): RDD[InternalRow] =
    SparkRDDs.empty(sparkContext, outputPartitioning.numPartitions)
}

/** A node whose rows are those of its child, where and in the order that they are there. */
trait PassesRows extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
}

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
