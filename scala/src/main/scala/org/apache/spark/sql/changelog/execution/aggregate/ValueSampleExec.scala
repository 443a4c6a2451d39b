// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
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
    val (keys, output) = (this.keys, child.output)
    child.execute().mapPartitionsInternal { rows =>
      val hashes = new ValueHashes(keys, output)
      val kept = new OpenHashSet[Long]
      val passed = rows.map { row =>
        numOutputRows += 1
        hashes.foreach(row)(hash => if (ValueSampleExec.isKept(hash)) kept.add(hash))
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

/**
 * Hashes of the values of a change, one of each kind. Values are hashed as bytes, since those of some types have no hash
 * in Spark: equal values with other bytes only make an estimate less exact.
 */
private[aggregate] final class ValueHashes(keys: Seq[Seq[Expression]], input: Seq[Attribute]) {
  private val keysOf = keys.map(UnsafeProjection.create(_, input)).toArray

  /** Calls `use` for each kind of which `row` has a value. */
  def foreach(row: InternalRow)(use: Long => Unit): Unit = {
    var kind = 0
    while (kind < keysOf.length) {
      val key = keysOf(kind)(row)
      if (!key.isNullAt(key.numFields - 1)) {
        use(XXH64.hashUnsafeBytes(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes, kind))
      }
      kind += 1
    }
  }
}

private[aggregate] object ValueSampleExec {

  /** So many hashes stand for one that is kept; a power of two. */
  private val oneOf = 16L

  private def isKept(hash: Long): Boolean = (hash & (oneOf - 1)) == 0
}
