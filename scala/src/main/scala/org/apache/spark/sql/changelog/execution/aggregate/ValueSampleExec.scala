// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.types.LongType
import org.apache.spark.util.CompletionIterator
import org.apache.spark.util.collection.OpenHashSet

import org.apache.spark.sql.changelog.execution.PassesRows

/**
 * Passes changes on, and estimates how many rows would be left of them if each task combined them
 * by group and value: as many as it sees different hashes of them, of which it keeps some only.
 *
 * @param keys
 *   what a change's group and value are, for each kind of values; nothing is there if the last of
 *   them is NULL
 */
private[execution] case class ValueSampleExec(keys: Seq[Seq[Expression]], child: SparkPlan)
    extends PassesRows {

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numCombinedRows" -> SQLMetrics.createMetric(
      sparkContext,
      "estimated number of rows combined"))

  override protected def doExecute(): RDD[InternalRow] = {
    val numOutputRows = longMetric("numOutputRows")
    val numCombinedRows = longMetric("numCombinedRows")
    val hashes = ValueSampleExec.hashes(keys)
    val numKinds = keys.size
    child.execute().mapPartitionsInternal { rows =>
      val hashOf = UnsafeProjection.create(hashes, child.output)
      val kept = new OpenHashSet[Long]
      val passed = rows.map { row =>
        numOutputRows += 1
        val hash = hashOf(row)
        var kind = 0
        while (kind < numKinds) {
          if (!hash.isNullAt(kind) && ValueSampleExec.isKept(hash.getLong(kind))) {
            kept.add(hash.getLong(kind))
          }
          kind += 1
        }
        row
      }
      CompletionIterator[InternalRow, Iterator[InternalRow]](
        passed,
        numCombinedRows += kept.size.toLong * ValueSampleExec.oneOf)
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ValueSampleExec =
    copy(child = newChild)
}

private[aggregate] object ValueSampleExec {

  /** A hash of each kind of values of a change, NULL where there is no value. */
  def hashes(keys: Seq[Seq[Expression]]): Seq[Expression] =
    keys.zipWithIndex.map { case (key, kind) =>
      If(IsNull(key.last), Literal(null, LongType), new XxHash64(key :+ Literal(kind)))
    }

  /** So many hashes stand for one that is kept; a power of two. */
  private val oneOf = 16L

  private def isKept(hash: Long): Boolean = (hash & (oneOf - 1)) == 0
}
