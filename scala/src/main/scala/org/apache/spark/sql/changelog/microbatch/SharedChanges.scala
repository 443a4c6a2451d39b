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
 * What the places of a plan know each other by that read the same part. Only itself is equal to it.
 *
 * @param number
 *   counts the shared parts of a query, as people see them
 */
final class SharedChanges(val number: Int) extends Serializable {
  @transient @volatile private var computed: Option[SparkPlan] = None

  /** Says where the part is computed: Spark prepares all of a plan before it executes any of it. */
  def computedBy(part: SparkPlan): Unit = computed = Some(part)

  /** Where the part is computed, whose shuffled rows are the same for every reader. */
  def part: SparkPlan = computed.getOrElse(
    throw SparkException.internalError(s"The shared part $number is read, but not computed"))

  override def toString: String = s"part $number"
}

/**
 * Lets several computations of one task read what a replay gives out, each the rows of its version
 * and side.
 *
 * The replay runs once: who comes first has all its rows put aside, by version and side, in arrays
 * that go to disk when they get large. A task works on its own copy of this.
 *
 * @param kindOrdinal
 *   where in replayed rows the version stands
 * @param sideOrdinal
 *   where the side does, if there are two
 */
final class ReplayedVersions(kindOrdinal: Int, sideOrdinal: Option[Int]) extends Serializable {
  import ReplayedVersions._

  @transient private var replayed: RDD[InternalRow] = _
  @transient private lazy val partitions =
    mutable.Map.empty[Int, mutable.Map[VersionOfSide, SpillingRows]]

  /** Says on the driver what is read. */
  def readFrom(rows: RDD[InternalRow]): Unit = replayed = rows

  /** The rows of one version and side. */
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
