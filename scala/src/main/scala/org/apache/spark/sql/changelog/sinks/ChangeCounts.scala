// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.LongAccumulator

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.RowKind.ChangeTypes

/**
 * How many rows a sink was given, and how many it was told to take back, in all batches since it was
 * made. A task that is tried again may count its rows again.
 */
class ChangeCounts {
  @volatile private var counters: Option[(LongAccumulator, LongAccumulator)] = None

  def written: Long = counters.fold(0L)(_._1.sum)

  def takenBack: Long = counters.fold(0L)(_._2.sum)

  /** Gives the rows as they are and counts them as they are read; `changeType`: where that column is. */
  def count(session: SparkSession, rows: RDD[InternalRow], changeType: Int): RDD[InternalRow] = {
    val (written, takenBack) = counters.getOrElse {
      val context = session.sparkContext
      val made = (context.longAccumulator, context.longAccumulator)
      counters = Some(made)
      made
    }
    val old = Seq(RowKind.UpdateBefore, RowKind.Delete).map(ChangeTypes(_))
    rows.mapPartitions { partition =>
      val names = old.map(UTF8String.fromString)
      partition.map { row =>
        (if (names.contains(row.getUTF8String(changeType))) takenBack else written).add(1L)
        row
      }
    }
  }
}
