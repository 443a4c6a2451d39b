// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.consolidate

import java.util.{ArrayList, LinkedHashMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.RowsByKey

/**
 * Nets a batch's changes to one change per key.
 *
 *   - in: any changes
 *   - out: per key, the changes left after equal rows cancel out: `+I`, `-D`, or a pair `-U +U`
 *   - state: none; a key's changes of a batch are in memory
 *   - law: replaying `out` and replaying the input give the same table
 *
 * @param key
 *   the columns by which changes are netted
 * @param pairs
 *   whether a retracted and an inserted row of the same key become an update; false if the key is the whole row
 * @param replaces
 *   whether before images are omitted, so that a `+U` alone is an update
 * @param inPlace
 *   whether changes are netted within their tasks, without a shuffle
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
        UnsafeProjection.create(columns :+ Literal(RowKind.Insert), child.output)
      RowsByKey(rows, key, child.output).flatMap { case (_, changes) =>
        val change = changes.next()
        val kind = change.getByte(kindOrdinal)
        val row = withKind(change)
        if (changes.hasNext) {
          val net = new NetChanges
          net.add(row, kind)
          changes.foreach { change =>
            val kind = change.getByte(kindOrdinal)
            net.add(withKind(change), kind)
          }
          val left = net.left
          numOutputRows += left.size
          numCancelledRows += net.numInputRows - left.size
          left.iterator.asScala
        } else {
          row.setByte(
            columns.size,
            if (RowKind.retracts(kind)) RowKind.Delete else insertKindOf(kind))
          numOutputRows += 1
          Iterator.single(row)
        }
      }
    }
  }

  /** Returns the kind of an insert or after image without a before image. */
  private def insertKindOf(kind: Byte): Byte =
    if (replaces && kind == RowKind.UpdateAfter) kind else RowKind.Insert

  /** Nets several changes of a key. */
  private final class NetChanges {
    // for each row, its signed count and its kind as a change without a before image
    private val counts = new LinkedHashMap[UnsafeRow, Array[Long]]
    var numInputRows = 0L

    def add(row: UnsafeRow, kind: Byte): Unit = {
      numInputRows += 1
      var count = counts.get(row)
      if (count == null) {
        count = Array(0L, RowKind.Insert)
        counts.put(row.copy(), count)
      }
      count(0) += RowKind.sign(kind)
      if (RowKind.Insert != insertKindOf(kind)) count(1) = kind
    }

    /** Returns the remaining changes. The rows of an update are adjacent. */
    def left: ArrayList[UnsafeRow] = {
      val gone = copies(-1)
      val come = copies(1)
      val numPairs = if (pairs) math.min(gone.size, come.size) else 0
      val all = new ArrayList[UnsafeRow](gone.size + come.size)
      for (i <- 0 until numPairs) {
        all.add(kindOf(gone.get(i), RowKind.UpdateBefore))
        all.add(kindOf(come.get(i), RowKind.UpdateAfter))
      }
      for (i <- numPairs until gone.size) all.add(kindOf(gone.get(i), RowKind.Delete))
      for (i <- numPairs until come.size) all.add(come.get(i))
      all
    }

    /** Returns the rows with a count of the given sign, each as often as it counts. */
    private def copies(sign: Long): ArrayList[UnsafeRow] = {
      val rows = new ArrayList[UnsafeRow]
      counts.forEach { (row, count) =>
        var copies = count(0) * sign
        while (copies > 0) {
          rows.add(kindOf(row.copy(), count(1).toByte))
          copies -= 1
        }
      }
      rows
    }

    private def kindOf(row: UnsafeRow, kind: Byte): UnsafeRow = {
      row.setByte(columns.size, kind)
      row
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogConsolidateExec =
    copy(child = newChild)
}
