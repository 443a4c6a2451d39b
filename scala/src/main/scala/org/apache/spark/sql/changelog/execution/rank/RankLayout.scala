// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.execution.{RowOrder, StateColumns}
import org.apache.spark.sql.changelog.plans.{RankStrategy, Ranking}

/**
 * Says in which columns a partition's rows are kept, and in which order they are.
 *
 * {{{
 *   append-fast, update-fast
 *     key    partition columns            value  rows, counts
 *   retract: the best rows, and one entry for each other row
 *     key    partition columns | NULL     value  rows, counts, how many other rows there are
 *            partition columns | row             NULL, NULL, count
 *   earliest
 *     key    partition columns            value  row, NULL when it has been emitted
 *   first-come
 *     key    partition columns            value  how many rows have come
 * }}}
 * Where there are no partition columns, a constant stands for them. `counts` is NULL where each row
 * is there once.
 *
 * @param columns
 *   all columns of a row
 */
final case class RankLayout(ranking: Ranking, columns: Seq[Attribute]) {
  import ranking.{order, partition, strategy}

  private val all = AttributeReference("table", IntegerType, nullable = false)()

  /** The columns that are kept for a row: the partition's are in the key. */
  val rowColumns: Seq[Attribute] = {
    val ordered = AttributeSet(order.flatMap(_.references))
    columns.filter(column => !isPartition(column) || ordered.contains(column))
  }

  val rowType: StructType = StateColumns(rowColumns.map(column => column.name -> column.dataType))

  private def isPartition(column: Attribute): Boolean =
    partition.exists(_.exprId == column.exprId)

  /** The columns a partition is looked up by. */
  val keyColumns: Seq[Attribute] = if (partition.isEmpty) Seq(all) else partition

  /** Their values, over the columns of a row. */
  val key: Seq[Expression] = if (partition.isEmpty) Seq(Literal(0)) else partition

  /** How a partition's rows are ordered, ties settled. */
  val rowOrder: Seq[SortOrder] = RowOrder(order, rowColumns)

  val keepsOthers: Boolean = strategy == RankStrategy.Retract

  def keySchema: StructType = {
    val others = if (keepsOthers) Seq(AttributeReference("row", rowType)()) else Nil
    StateColumns.ofKey(keyColumns ++ others)
  }

  def valueSchema: StructType = strategy match {
    case RankStrategy.FirstCome => StateColumns(Seq("count" -> LongType))
    case RankStrategy.Earliest => StateColumns(Seq("row" -> rowType))
    case _ =>
      val head = Seq(
        "rows" -> ArrayType(rowType, containsNull = false),
        "counts" -> ArrayType(LongType, containsNull = false))
      StateColumns(head ++ (if (keepsOthers) Seq("count" -> LongType) else Nil))
  }
}
