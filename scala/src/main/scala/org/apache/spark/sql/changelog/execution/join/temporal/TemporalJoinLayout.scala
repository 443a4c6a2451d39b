// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import java.util.Comparator

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.execution.join.JoinLayout
import org.apache.spark.sql.changelog.execution.{RowOrder, StateColumns}
import org.apache.spark.sql.changelog.plans.TemporalSide

/**
 * One side of a temporal join.
 *
 * @param number
 *   0 for left rows, 1 for versions
 * @param columns
 *   its columns, without row kind
 * @param isForward
 *   whether the latest rows come first
 * @param ties
 *   which of several rows of one time is meant; it comes last
 */
final case class TemporalSideLayout(
    number: Int,
    columns: Seq[Attribute],
    joined: TemporalSide,
    isForward: Boolean,
    ties: Seq[SortOrder]) {

  val name: String = JoinLayout.Names(number)

  def key: Seq[Expression] = joined.key

  def time: Attribute = joined.time

  val timeOrdinal: Int = columns.indexWhere(_.exprId == time.exprId)

  // the best of several rows of one time is the first one, as everywhere
  private val bestFirst: Seq[SortOrder] =
    RowOrder(SortOrder(time, if (isForward) Ascending else Descending) +: ties, columns)

  /** The order rows are kept in, as far as Spark can sort by it. */
  val order: Seq[SortOrder] = bestFirst.map { order =>
    val direction = if (order.direction == Ascending) Descending else Ascending
    val nulls = if (order.nullOrdering == NullsFirst) NullsLast else NullsFirst
    SortOrder(order.child, direction, nulls, Nil)
  }

  /** The whole order, of which Spark can sort by `order`. */
  def comparator(): Comparator[UnsafeRow] =
    RowOrder.total(RowOrdering.create(bestFirst, columns)).reversed()

  val struct: StructType = JoinLayout.struct(columns)
}

/**
 * Says in which columns a temporal join keeps the rows of both sides: in order, cut into runs.
 *
 * {{{
 *   key    table, join key columns, run          value  left, right, counts
 *   of a run        0 left, 1 right, its number         rows, in order, and how often each is there
 *   of a directory  2 left, 3 right, 0                  the first row of each run, and the runs' numbers
 * }}}
 * As long as there is one run, number 0, there is no directory. `counts` is NULL where each row is
 * there once.
 */
final case class TemporalJoinLayout(left: TemporalSideLayout, right: TemporalSideLayout) {
  private val sides = Seq(left, right)

  val keySchema: StructType = {
    val joinKey = left.key.map(part => JoinLayout.nameOf(part) -> JoinLayout.plain(part.dataType))
    StateColumns((("table" -> ByteType) +: joinKey) :+ ("run" -> LongType))
  }

  val valueSchema: StructType = StateColumns(
    sides.map(side => side.name -> ArrayType(side.struct, containsNull = false)) :+
      ("counts" -> ArrayType(LongType, containsNull = false)))

  /** The columns of a join key. */
  val joinKey: Seq[BoundReference] =
    left.key.zipWithIndex.map { case (part, index) =>
      BoundReference(index, JoinLayout.plain(part.dataType), nullable = true)
    }
}
