// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import scala.reflect.ClassTag

import org.apache.spark.rdd.{
  MapPartitionsRDD, RDD, SQLPartitioningAwareUnionRDD, ZippedPartitionsRDD2
}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.ExternalAppendOnlyUnsafeRowArray
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.{SparkContext, TaskContext}

/**
 * Maps and combines partitions. The methods of an RDD would clean their functions, which makes Spark read class
 * files.
 */
object SparkRDDs {

  /** Maps each partition. */
  def map[T: ClassTag, U: ClassTag](rows: RDD[T])(of: Iterator[T] => Iterator[U]): RDD[U] =
    new MapPartitionsRDD[U, T](rows, (_: TaskContext, _: Int, all: Iterator[T]) => of(all))

  /** Maps each pair of partitions with the same index. */
  def zip[A: ClassTag, B: ClassTag, T: ClassTag](first: RDD[A], second: RDD[B])(
      of: (Iterator[A], Iterator[B]) => Iterator[T]): RDD[T] =
    new ZippedPartitionsRDD2(first.sparkContext, of, first, second)

  /** Concatenates the partitions with the same index, in a single task. */
  def concatenate(all: Seq[RDD[InternalRow]], numPartitions: Int): RDD[InternalRow] =
    new SQLPartitioningAwareUnionRDD(all.head.sparkContext, all, numPartitions)

  /** Returns partitions without rows. */
  def empty(context: SparkContext, numPartitions: Int): RDD[InternalRow] =
    if (numPartitions == 0) context.emptyRDD else context.parallelize(Nil, numPartitions)
}

/** Rows buffered in a task, which spill to disk. */
final class SpillingRows(limits: SpillingRows.Limits) {
  private val rows = new ExternalAppendOnlyUnsafeRowArray(
    limits.rowsInMemory,
    limits.bytesBeforeSpill,
    limits.rowsBeforeSpill,
    limits.bytesBeforeSpill)

  def add(row: UnsafeRow): Unit = rows.add(row)

  def iterator: Iterator[UnsafeRow] = rows.generateIterator()
}

object SpillingRows {

  /** The limits above which rows spill. */
  final case class Limits(rowsInMemory: Int, rowsBeforeSpill: Int, bytesBeforeSpill: Long)

  object Limits {

    /** The spill thresholds of Spark's window functions. */
    def ofWindows(conf: SQLConf): Limits = Limits(
      conf.windowExecBufferInMemoryThreshold,
      conf.windowExecBufferSpillThreshold,
      conf.windowExecBufferSpillSizeThreshold)
  }
}
