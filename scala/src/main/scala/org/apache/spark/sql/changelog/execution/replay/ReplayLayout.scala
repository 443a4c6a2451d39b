// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.execution.{RowOrder, StateColumns}

/**
 * Says in which columns rows are kept, and in which order they are given out.
 *
 * {{{
 *   key    partition columns | other columns
 *          table             | all columns         no partition columns; table 1 has the one entry
 *                                                  that says that a version has been given out
 *   value  count
 * }}}
 *
 * @param partition
 *   the columns rows are kept by
 * @param columns
 *   all columns of a row, as they are given out
 * @param order
 *   the wanted order
 */
final case class ReplayLayout(
    partition: Seq[Attribute],
    columns: Seq[Attribute],
    order: Seq[SortOrder]) {
  private val table = AttributeReference("table", IntegerType, nullable = false)()
  // an entry is looked up by more than its prefix, even where there is nothing else
  private val nothing = AttributeReference("row", IntegerType, nullable = false)()

  private val others: Seq[Attribute] =
    columns.filterNot(column => partition.exists(_.exprId == column.exprId))

  private val prefix: Seq[Attribute] = if (partition.isEmpty) Seq(table) else partition

  /** The columns of a key. */
  val key: Seq[Attribute] = prefix ++ (if (others.isEmpty) Seq(nothing) else others)

  val numPrefixColumns: Int = prefix.size

  /** The key of a row, over its columns. */
  val keyOfRow: Seq[Expression] = key.map { column =>
    if (column.exprId == table.exprId || column.exprId == nothing.exprId) Literal(0) else column
  }

  /** The key of the entry that says that a version has been given out. */
  val keyOfVersion: Seq[Expression] = key.map { column =>
    if (column.exprId == table.exprId) Literal(1) else Literal(null, column.dataType)
  }

  /** Whether a key is that of a row. */
  def isRow(key: UnsafeRow): Boolean = partition.nonEmpty || key.getInt(0) == 0

  /** How a partition's rows are ordered. */
  val rowOrder: Seq[SortOrder] = RowOrder(order, others)

  def keySchema: StructType = StateColumns.ofKey(key)

  def valueSchema: StructType = StateColumns(Seq("count" -> LongType))
}
