// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.{JoinBound, SparkRules}
import org.apache.spark.sql.changelog.execution.StateColumns
import org.apache.spark.sql.changelog.inference.DescribeNode
import org.apache.spark.sql.changelog.inference.times.JoinWatermark
import org.apache.spark.sql.changelog.inference.times.JoinWatermark.ArbitraryTime
import org.apache.spark.sql.changelog.microbatch.BatchTime
import org.apache.spark.sql.changelog.plans.{JoinedSide, SideForm}

/**
 * The state layout of one side of a join.
 *
 * @param number
 *   the side in the key of the side's records: 0 for left, 1 for right, or more
 * @param name
 *   the name of the side's columns in state
 * @param columns
 *   the side's columns, without row kind
 */
final case class JoinSideLayout(
    number: Int,
    name: String,
    columns: Seq[Attribute],
    joined: JoinedSide) {
  import joined.{kind, rowKey}

  def key: Seq[Expression] = joined.key

  def form: SideForm = joined.form

  def tracksMatches: Boolean = joined.tracksMatches

  /** The state key's columns after the join key; empty if the join key is unique. */
  def suffix: Option[StructType] = form match {
    case SideForm.OneRow | SideForm.KeyCount | SideForm.Nothing => None
    case SideForm.RowByKey => Some(JoinLayout.struct(rowKey))
    case SideForm.RowCount => Some(JoinLayout.struct(columns))
    case SideForm.RowList => Some(AppendedRows.Chunk)
  }

  /** The type of the row, or rows, in the value of a record; empty if the value holds no row. */
  def row: Option[DataType] = form match {
    case SideForm.OneRow | SideForm.RowByKey => Some(JoinLayout.struct(columns))
    case SideForm.RowList => Some(ArrayType(JoinLayout.struct(columns), containsNull = false))
    case _ => None
  }

  /** An order that keeps all changes of a row together. */
  def changeOrder: Seq[SortOrder] = {
    val row = form match {
      // an insert-only row has a single change
      case _ if kind.isEmpty => Nil
      case SideForm.RowByKey => rowKey
      case SideForm.RowCount =>
        columns.filter(column => RowOrdering.isOrderable(column.dataType))
      case _ => Nil
    }
    row.map(SortOrder(_, Ascending))
  }

  def isCounted: Boolean = form == SideForm.RowCount || form == SideForm.KeyCount
}

object JoinSideLayout {

  /** Returns the layout of the left or right side, whose changes have the columns `input`. */
  def apply(number: Int, joined: JoinedSide, input: Seq[Attribute]): JoinSideLayout =
    JoinSideLayout(number, JoinLayout.Names(number), RowKind.without(joined.kind, input), joined)
}

/**
 * The state columns of a join with two or more sides.
 *
 * {{{
 *   key    side (0 left, 1 right), join key columns, left STRUCT, right STRUCT
 *   value  left STRUCT or ARRAY, right STRUCT or ARRAY, count, matches
 * }}}
 *
 * A record of a side has NULL in the other sides' columns. Columns that no side needs are absent. In the key, a
 * side's column identifies the row within the join key: a key of the row, or the whole row.
 */
final case class JoinLayout(sides: Seq[JoinSideLayout]) {
  val keySchema: StructType = {
    val joinKey = sides.head.key.map(part => JoinLayout.nameOf(part) -> part.dataType)
    val suffixes = sides.flatMap(side => side.suffix.map(side.name -> _))
    val columns = ("side" -> ByteType) +: (joinKey ++ suffixes)
    StateColumns(columns.map { case (name, dataType) => name -> JoinLayout.plain(dataType) })
  }

  val valueSchema: StructType = {
    val rows = sides.flatMap(side => side.row.map(side.name -> _))
    val count = if (sides.exists(_.isCounted)) Seq("count" -> LongType) else Nil
    val matches = if (sides.exists(_.tracksMatches)) Seq("matches" -> LongType) else Nil
    StateColumns(rows ++ count ++ matches)
  }

  /** The number of key columns shared by all records of a side and join key. */
  val numPrefixColumns: Int = 1 + sides.head.key.size

  /** Whether the rows of a join key are found by a prefix scan, and not only by a lookup. */
  def isScanned: Boolean = keySchema.size > numPrefixColumns

  /** Returns the ordinal, in the state key, of a side's columns after the join key. */
  def suffixOrdinal(side: JoinSideLayout): Int =
    numPrefixColumns + sides.take(side.number).count(_.suffix.isDefined)

  def rowOrdinal(side: JoinSideLayout): Int = sides.take(side.number).count(_.row.isDefined)

  val countOrdinal: Int = sides.count(_.row.isDefined)

  val matchesOrdinal: Int = valueSchema.size - 1
}

object JoinLayout {
  val Names: IndexedSeq[String] = IndexedSeq("left", "right")

  private[execution] def struct(columns: Seq[Expression]): StructType =
    StateColumns(columns.map { column =>
      nameOf(column) -> plain(column.dataType)
    })

  /** Returns the column's name, without the normalization of its value. */
  private[execution] def nameOf(column: Expression): String =
    DescribeNode.expression(column.transform {
      case CollationKey(child) => child
      case other => SparkRules.withoutNormalization(other)
    })

  /** Returns the type of values in state. Texts lose their collation and are stored by their bytes. */
  private[execution] def plain(dataType: DataType): DataType = dataType.transformRecursively {
    case _: StringType => StringType
  }
}

/**
 * Bounds the rows of a side of a join by a watermark.
 *
 * @param late
 *   the condition on late rows; empty if no row can be late
 * @param keyOrdinal
 *   the column of the join key with the event time that expires rows
 * @param row
 *   without such a key column: the event time of a row, and the delay after which the row expires, in
 *   microseconds
 */
private[join] final case class JoinSideTimeBound(
    side: JoinSideLayout,
    late: Option[Expression],
    keyOrdinal: Option[Int],
    row: Option[(Attribute, Long)]) {

  /** Whether rows expire. */
  def isBounded: Boolean = keyOrdinal.isDefined || row.isDefined
}

private[join] object JoinSideTimeBound {

  /** Returns whether a watermark, at some time, bounds the left and the right side. */
  def isBounded(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression]): Seq[Boolean] =
    watermark(left, right, condition).fold(Seq(false, false))(
      _.over(ArbitraryTime).map(_.isDefined))

  /** Returns the delay of the result in ms: how far the event time of an emitted row can be behind the watermark. */
  def delay(left: JoinSideLayout, right: JoinSideLayout, condition: Option[Expression]): Long =
    watermark(left, right, condition).fold(0L)(_.delay)

  /**
   * Returns None if the join stores no left rows. A left row then arrives at any time, and looks up rows of any
   * time.
   */
  private def watermark(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression]): Option[JoinWatermark] =
    if (left.form == SideForm.Nothing) None
    else Some(JoinWatermark(left.columns, right.columns, left.key, right.key, condition))

  /** Returns the bounds of both sides. */
  def apply(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression],
      time: BatchTime): Seq[JoinSideTimeBound] = {
    val bounds = watermark(left, right, condition)
    val sometime =
      bounds.fold(Seq.fill(2)(Option.empty[JoinBound]))(_.over(ArbitraryTime))
    val eventTimes = bounds.fold(Seq.fill(2)(Option.empty[Expression]))(_.lateBy)
    Seq(left, right).zip(sometime).zip(eventTimes).map { case ((side, bound), eventTime) =>
      JoinSideTimeBound(
        side,
        olderThan(eventTime, time.lateWatermark),
        bound.collect { case JoinBound.InKey(ordinal, _) => ordinal },
        bound.collect { case row: JoinBound.InRow =>
          // a row may expire before changes of the row become late
          val delay = math.max(0L, ArbitraryTime - row.watermark)
          (eventTime.get.asInstanceOf[Attribute], DateTimeUtils.millisToMicros(delay))
        })
    }
  }

  private def olderThan(
      eventTime: Option[Expression],
      watermark: Option[Long]): Option[Expression] =
    if (eventTime.isEmpty) None else WatermarkSupport.watermarkExpression(eventTime, watermark)
}
