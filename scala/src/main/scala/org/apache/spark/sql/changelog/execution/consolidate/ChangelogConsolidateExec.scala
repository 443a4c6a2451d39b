// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.consolidate

import java.util.LinkedHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.RowsByKey

/**
 * Nets a batch's changes so that one change per key is left.
 *
 *   - in: any changes
 *   - out: per key what is left after equal rows cancelled out: `+I`, `-D`, or a pair `-U +U`
 *   - state: none; a key's changes of one batch are held in memory
 *   - law: replaying `out` and replaying the input give the same table
 *
 * @param key
 *   the columns by which changes are netted
 * @param pairs
 *   whether a row that goes and one that comes under the same key are an update; not so where
 *   the key is the whole row
 * @param replaces
 *   whether old rows are left out, so that a `+U` alone is an update
 * @param inPlace
 *   whether changes stay in the tasks they are in
 */
case class ChangelogConsolidateExec(
    key: Seq[Attribute],
    pairs: Boolean,
    replaces: Boolean,
    inputKind: Attribute,
    outputKind: Attribute,
    inPlace: Boolean,
    child: SparkPlan)
    extends UnaryExecNode {

  private def columns: Seq[Attribute] = child.output.filterNot(_.exprId == inputKind.exprId)

  override def output: Seq[Attribute] = columns :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def requiredChildDistribution: Seq[Distribution] =
    if (inPlace) Seq(UnspecifiedDistribution)
    else if (key.isEmpty) Seq(AllTuples)
    else Seq(ClusteredDistribution(key))

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = {
    val byKey = key.map(SortOrder(_, Ascending))
    Seq(
      if (SortOrder.orderingSatisfies(child.outputOrdering, byKey)) byKey
      else RowsByKey.order(key))
  }

  override def simpleString(maxFields: Int): String =
    s"$nodeName key=${truncatedString(key, "[", ", ", "]", maxFields)}"

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numCancelledRows" -> SQLMetrics.createMetric(sparkContext, "number of rows cancelled out"))

  override protected def doExecute(): RDD[InternalRow] = {
    val numOutputRows = longMetric("numOutputRows")
    val numCancelledRows = longMetric("numCancelledRows")
    child.execute().mapPartitionsInternal { rows =>
      val kindOrdinal = child.output.indexWhere(_.exprId == inputKind.exprId)
      val withKind =
        GenerateUnsafeProjection.generate(columns :+ Literal(RowKind.Insert), child.output)
      RowsByKey(rows, key, child.output).flatMap { case (_, changes) =>
        val counts = new LinkedHashMap[UnsafeRow, Array[Long]]
        var numInputRows = 0L
        changes.foreach { change =>
          numInputRows += 1
          val kind = change.getByte(kindOrdinal)
          val sign = RowKind.sign(kind)
          val row = withKind(change)
          var count = counts.get(row)
          if (count == null) {
            count = Array(0L, RowKind.Insert)
            counts.put(row.copy(), count)
          }
          count(0) += sign
          if (replaces && kind == RowKind.UpdateAfter) count(1) = kind
        }
        val left = emit(counts)
        numOutputRows += left.size
        numCancelledRows += numInputRows - left.size
        left
      }
    }
  }

  /**
   * The rows that are left, an update's rows next to each other.
   *
   * @param counts
   *   how often each row has come, and the kind it comes with if it comes alone
   */
  private def emit(counts: LinkedHashMap[UnsafeRow, Array[Long]]): Seq[UnsafeRow] = {
    val kind = output.size - 1
    def copies(sign: Long) = counts.asScala.toSeq.flatMap { case (row, count) =>
      row.setByte(kind, count(1).toByte)
      Seq.fill(math.max(0L, count(0) * sign).toInt)(row.copy())
    }
    val gone = copies(-1)
    val come = copies(1)
    val numPairs = if (pairs) math.min(gone.size, come.size) else 0
    val updates = gone.take(numPairs).zip(come.take(numPairs)).flatMap { case (before, after) =>
      before.setByte(kind, RowKind.UpdateBefore)
      after.setByte(kind, RowKind.UpdateAfter)
      Seq(before, after)
    }
    val deletes = gone.drop(numPairs)
    deletes.foreach(_.setByte(kind, RowKind.Delete))
    updates ++ deletes ++ come.drop(numPairs)
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogConsolidateExec =
    copy(child = newChild)
}
