// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.Distribution
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.util.collection.OpenHashSet

import org.apache.spark.sql.changelog.compat.StatePlacement
import org.apache.spark.sql.changelog.execution.PassesRows

/**
 * Lets each task decide whether to combine changes by group and value, in a batch without a known benefit.
 *
 * {{{
 *   CombineByTaskExec             combined rows, then those of single changes
 *   +- HashAggregate (partial)
 *      +- Expand
 *         +- ChangesByTaskExec    all changes of a task, or none
 *            +- changes
 * }}}
 * If the first changes of a task hardly repeat, [[ChangesByTaskExec]] passes none to Spark's aggregate. Instead
 * it projects each change to a row, and this node returns these rows after the aggregate's (empty) result.
 *
 * @param operatorId
 *   the id of the aggregate, to find the task's [[ChangesByTaskExec]]
 */
private[execution] case class CombineByTaskExec(operatorId: Long, child: SparkPlan)
    extends PassesRows {

  override def outputOrdering: Seq[SortOrder] = Nil

  override protected def doExecute(): RDD[InternalRow] = {
    val operatorId = this.operatorId
    child.execute().mapPartitionsInternal(_ ++ SingleChanges.take(operatorId))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): CombineByTaskExec =
    copy(child = newChild)
}

/**
 * Passes the changes of a task to the aggregate above, or around it.
 *
 * @param operatorId
 *   the id of the [[CombineByTaskExec]] above
 * @param keys
 *   a change's group and value, for each kind of values; if the last column is NULL, the change has no value
 * @param single
 *   the row of an uncombined change
 */
private[execution] case class ChangesByTaskExec(
    operatorId: Long,
    keys: Seq[Seq[Expression]],
    single: Seq[NamedExpression],
    child: SparkPlan)
    extends PassesRows {

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numSingleChanges" -> SQLMetrics
      .createMetric(sparkContext, "number of changes not combined"))

  override protected def doExecute(): RDD[InternalRow] = {
    val numSingleChanges = longMetric("numSingleChanges")
    val (operatorId, keys) = (this.operatorId, this.keys)
    val (single, output) = (this.single, child.output)
    child.execute().mapPartitionsInternal { rows =>
      val first = new FirstChanges(new ValueHashes(keys, output), rows)
      val all = first.changes.iterator ++ rows
      if (first.repeat) all
      else {
        val singleOf = UnsafeProjection.create(single, output)
        SingleChanges.give(
          operatorId,
          all.map { row =>
            numSingleChanges += 1
            singleOf(row)
          })
        Iterator.empty
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangesByTaskExec =
    copy(child = newChild)
}

/** Reads the first changes of a task and decides whether their values repeat. */
private final class FirstChanges(hashes: ValueHashes, rows: Iterator[InternalRow]) {
  val changes: mutable.ArrayBuffer[InternalRow] = mutable.ArrayBuffer.empty

  val repeat: Boolean = {
    val seen = new OpenHashSet[Long]
    var numValues = 0L
    while (changes.size < FirstChanges.MaxChanges && rows.hasNext) {
      val row = rows.next().copy()
      changes += row
      hashes.foreach(row) { hash =>
        numValues += 1
        seen.add(hash)
      }
    }
    // so few changes are cheap to combine
    changes.size < FirstChanges.MaxChanges ||
    numValues - seen.size >= numValues * FirstChanges.MinRepeated
  }
}

private object FirstChanges {
  val MaxChanges = 10000

  /** With a hundred thousand equally frequent values, a twentieth of the first [[MaxChanges]] values repeats. */
  val MinRepeated = 0.05
}

/** Rows passed from [[ChangesByTaskExec]] to [[CombineByTaskExec]] within a task. */
private object SingleChanges {
  private val handedOver = new ConcurrentHashMap[(Long, Long), Iterator[InternalRow]]()

  def give(operatorId: Long, rows: Iterator[InternalRow]): Unit = {
    val task = TaskContext.get()
    val key = task.taskAttemptId() -> operatorId
    handedOver.put(key, rows)
    // for a task that fails before `take`
    task.addTaskCompletionListener[Unit] { _ =>
      handedOver.remove(key)
      ()
    }
    ()
  }

  def take(operatorId: Long): Iterator[InternalRow] =
    Option(handedOver.remove(TaskContext.get().taskAttemptId() -> operatorId))
      .getOrElse(Iterator.empty)
}

/**
 * Asks Spark for rows clustered as the operator above requires, and sorted by more columns than it requires.
 *
 * @param numPartitions
 *   the number of partitions of the operator's state
 */
private[aggregate] case class SortedRowsExec(
    clustering: Seq[Attribute],
    numPartitions: Int,
    order: Seq[SortOrder],
    child: SparkPlan)
    extends PassesRows {

  override def requiredChildDistribution: Seq[Distribution] =
    Seq(StatePlacement.clusteredBy(clustering, numPartitions, conf))

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = Seq(order)

  override protected def doExecute(): RDD[InternalRow] = child.execute()

  override protected def withNewChildInternal(newChild: SparkPlan): SortedRowsExec =
    copy(child = newChild)
}
