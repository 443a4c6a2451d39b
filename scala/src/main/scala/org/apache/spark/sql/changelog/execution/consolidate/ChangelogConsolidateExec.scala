// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.consolidate

import java.util.ArrayList

import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.{RowsByKey, SignedRows}

/**
 * Nets a batch's changes to one change per key, see [[org.apache.spark.sql.changelog.plans.ChangelogConsolidate]].
 *
 *   - in: any changes
 *   - out: per key, the changes left after equal rows cancel out: `+I`, `-D`, or a pair `-U +U`
 *   - state: none; a key's changes of a batch are in memory
 *   - law: replaying `out` and replaying the input give the same table
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
      val rowOf = UnsafeProjection.create(columns :+ Literal(RowKind.Insert), child.output)
      RowsByKey(rows, key, child.output).flatMap { case (_, changes) =>
        val change = changes.next()
        val kind = change.getByte(kindOrdinal)
        val row = rowOf(change)
        if (changes.hasNext) {
          val net = new SignedRows
          net(row).add(kind)
          var numChanges = 1L
          changes.foreach { change =>
            val kind = change.getByte(kindOrdinal)
            net(rowOf(change)).add(kind)
            numChanges += 1
          }
          val rows = left(net)
          numOutputRows += rows.size
          numCancelledRows += numChanges - rows.size
          rows.iterator.asScala
        } else {
          numOutputRows += 1
          Iterator.single(
            withKind(row, if (RowKind.retracts(kind)) RowKind.Delete else insertKindOf(kind)))
        }
      }
    }
  }

  /** Returns the kind of an insert or after image without a before image. */
  private def insertKindOf(kind: Byte): Byte =
    if (replaces && kind == RowKind.UpdateAfter) kind else RowKind.Insert

  /** Returns the changes left of a key's changes. The rows of an update are adjacent. */
  private def left(net: SignedRows): ArrayList[UnsafeRow] = {
    val (gone, come) = (new ArrayList[UnsafeRow], new ArrayList[UnsafeRow])
    net.left.foreach { entry =>
      val (rows, kind) =
        if (entry.count < 0) (gone, RowKind.Delete) else (come, insertKindOf(entry.insertKind))
      var copies = math.abs(entry.count)
      while (copies > 0) {
        rows.add(withKind(entry.row.copy(), kind))
        copies -= 1
      }
    }
    val numPairs = if (pairs) math.min(gone.size, come.size) else 0
    val all = new ArrayList[UnsafeRow](gone.size + come.size)
    for (i <- 0 until numPairs) {
      all.add(withKind(gone.get(i), RowKind.UpdateBefore))
      all.add(withKind(come.get(i), RowKind.UpdateAfter))
    }
    all.addAll(gone.subList(numPairs, gone.size))
    all.addAll(come.subList(numPairs, come.size))
    all
  }

  private def withKind(row: UnsafeRow, kind: Byte): UnsafeRow = {
    row.setByte(columns.size, kind)
    row
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogConsolidateExec =
    copy(child = newChild)
}
