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
 * Counts the rows written and retracted by a sink since its creation, over all batches. A
 * repeated task may count its rows again.
 */
class ChangeCounts {
  @volatile private var counters: Option[(LongAccumulator, LongAccumulator)] = None

  def written: Long = counters.fold(0L)(_._1.sum)

  def takenBack: Long = counters.fold(0L)(_._2.sum)

  /**
   * Returns the rows unchanged, and counts them during the read. `changeType` is the position of
   * the change type.
   */
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
