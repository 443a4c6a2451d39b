// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.ExternalAppendOnlyUnsafeRowArray
import org.apache.spark.sql.internal.SQLConf

/** Rows that are put aside in a task, and go to disk when they get many. */
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

  /** When rows go to disk. */
  final case class Limits(rowsInMemory: Int, rowsBeforeSpill: Int, bytesBeforeSpill: Long)

  object Limits {

    /** Those of Spark's window functions. */
    def ofWindows(conf: SQLConf): Limits = Limits(
      conf.windowExecBufferInMemoryThreshold,
      conf.windowExecBufferSpillThreshold,
      conf.windowExecBufferSpillSizeThreshold)
  }
}
