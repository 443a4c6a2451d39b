// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning,
  Partitioning,
  SinglePartition
}
import org.apache.spark.sql.execution.LeafExecNode
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.plans.ReplayedVersion

/**
 * Gives the rows of one version of groups to a computation of Spark's. They come from a replay in
 * the same task, so they are where it has them: group after group, in its order.
 *
 * @param numPartitions
 *   how many partitions the replay has
 */
case class ReplayedVersionExec(rows: ReplayedVersion, numPartitions: Int) extends LeafExecNode {

  override def output: Seq[Attribute] = rows.output

  override def outputPartitioning: Partitioning =
    if (rows.group.isEmpty) SinglePartition else HashPartitioning(rows.group, numPartitions)

  override def outputOrdering: Seq[SortOrder] =
    rows.group.map(SortOrder(_, Ascending)) ++ rows.order

  override def simpleString(maxFields: Int): String =
    (Seq(nodeName, RowKind.Symbols(rows.version)) ++ rows.side.map(side => s"side $side"))
      .mkString(" ")

  override lazy val metrics: Map[String, SQLMetric] =
    Map("numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"))

  override protected def doExecute(): RDD[InternalRow] = {
    val numOutputRows = longMetric("numOutputRows")
    val columns = rows.ordinals.zip(output).map { case (ordinal, column) =>
      BoundReference(ordinal, column.dataType, column.nullable)
    }
    rows.versions.rows(rows.version, rows.side).mapPartitionsInternal { replayed =>
      val columnsOf = UnsafeProjection.create(columns)
      replayed.map { row =>
        numOutputRows += 1
        columnsOf(row)
      }
    }
  }
}
