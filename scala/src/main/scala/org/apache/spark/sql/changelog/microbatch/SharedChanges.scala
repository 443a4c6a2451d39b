// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.microbatch

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.{Partition, SparkException, TaskContext}

import org.apache.spark.sql.changelog.compat.SpillingRows

/**
 * Identifies a shared part in the nodes that compute or read the part. Equality is identity.
 *
 * @param number
 *   the number of the shared part in the query, as shown to users
 */
final class SharedChanges(val number: Int) extends Serializable {
  @transient @volatile private var computed: Option[SparkPlan] = None

  /** Sets the node that computes the part. Spark prepares the whole plan before execution. */
  def computedBy(part: SparkPlan): Unit = computed = Some(part)

  /** The node that computes the part. Every reader reads the node's shuffled rows. */
  def part: SparkPlan = computed.getOrElse(
    throw SparkException.internalError(s"The shared part $number is read, but not computed"))

  override def toString: String = s"part $number"
}

/**
 * Lets several computations in a task read the output of a replay, each the rows of its version and side.
 *
 * The replay runs once. The first reader stores the rows by version and side, in arrays that spill to disk.
 * Each task has its own copy of this object.
 *
 * @param kindOrdinal
 *   the ordinal of the version in replayed rows
 * @param sideOrdinal
 *   the ordinal of the side, for a replay with two sides
 */
final class ReplayedVersions(kindOrdinal: Int, sideOrdinal: Option[Int]) extends Serializable {
  import ReplayedVersions._

  @transient private var replayed: RDD[InternalRow] = _
  @transient private lazy val partitions =
    mutable.Map.empty[Int, mutable.Map[VersionOfSide, SpillingRows]]

  /** Sets the replayed rows, on the driver. */
  def readFrom(rows: RDD[InternalRow]): Unit = replayed = rows

  /** Returns the rows of a version and side. */
  def rows(version: Byte, side: Option[Int]): RDD[InternalRow] = {
    if (replayed == null) throw SparkException.internalError("A version is read by itself")
    val limits = SpillingRows.Limits.ofWindows(SQLConf.get)
    new VersionRDD(replayed, this, VersionOfSide(version, side), limits)
  }

  private def read(
      partition: Int,
      version: VersionOfSide,
      limits: SpillingRows.Limits,
      all: => Iterator[InternalRow]): Iterator[InternalRow] = {
    val rowsOf = partitions.getOrElseUpdate(partition, separate(all, limits))
    rowsOf.get(version).map(_.iterator).getOrElse(Iterator.empty)
  }

  private def separate(
      rows: Iterator[InternalRow],
      limits: SpillingRows.Limits): mutable.Map[VersionOfSide, SpillingRows] = {
    val rowsOf = mutable.Map.empty[VersionOfSide, SpillingRows]
    rows.foreach { row =>
      val version = VersionOfSide(row.getByte(kindOrdinal), sideOrdinal.map(row.getInt))
      rowsOf.getOrElseUpdate(version, new SpillingRows(limits)).add(row.asInstanceOf[UnsafeRow])
    }
    rowsOf
  }
}

private object ReplayedVersions {
  final case class VersionOfSide(version: Byte, side: Option[Int])

  final class VersionRDD(
      replayed: RDD[InternalRow],
      versions: ReplayedVersions,
      version: VersionOfSide,
      limits: SpillingRows.Limits)
      extends RDD[InternalRow](replayed) {

    override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions

    override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] =
      versions.read(
        split.index,
        version,
        limits,
        firstParent[InternalRow].iterator(split, context))
  }
}
