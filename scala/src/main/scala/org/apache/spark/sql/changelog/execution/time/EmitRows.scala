// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.ChangeMetrics

/** Makes the changes that an operator emits of rows, and counts them. */
private[time] final class EmitRows(columns: Seq[Attribute], metrics: ChangeMetrics) {
  private val withKind =
    UnsafeProjection.create(columns.zipWithIndex.map { case (column, ordinal) =>
      BoundReference(ordinal, column.dataType, column.nullable)
    } :+ Literal(RowKind.Insert))

  /** As many changes as `count` says, which is below 0 where the row goes. */
  def apply(row: UnsafeRow, count: Long, comes: Byte, goes: Byte): Iterator[InternalRow] =
    if (count == 0) Iterator.empty
    else {
      val change = withKind(row).copy()
      val kind = if (count > 0) comes else goes
      change.setByte(columns.size, kind)
      (0L until math.abs(count)).iterator.map { _ =>
        metrics.emit(kind)
        change.copy()
      }
    }
}
