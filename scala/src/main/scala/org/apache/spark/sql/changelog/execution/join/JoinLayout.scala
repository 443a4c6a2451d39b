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
import org.apache.spark.sql.changelog.inference.times.JoinWatermark.Sometime
import org.apache.spark.sql.changelog.microbatch.BatchTime
import org.apache.spark.sql.changelog.plans.{JoinedSide, SideForm}

/**
 * One side of a join.
 *
 * @param number
 *   0 for left, 1 for right, or more: what its records begin with
 * @param name
 *   what its columns in state are called
 * @param columns
 *   its columns, without row kind
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

  /** The state key's columns after the join key; none if the join key is unique. */
  def suffix: Option[StructType] = form match {
    case SideForm.OneRow | SideForm.KeyCount | SideForm.Nothing => None
    case SideForm.RowByKey => Some(JoinLayout.struct(rowKey))
    case SideForm.RowCount => Some(JoinLayout.struct(columns))
    case SideForm.RowList => Some(AppendedRows.Chunk)
  }

  /** The row in the value of a record, or its rows, if they are kept there. */
  def row: Option[DataType] = form match {
    case SideForm.OneRow | SideForm.RowByKey => Some(JoinLayout.struct(columns))
    case SideForm.RowList => Some(ArrayType(JoinLayout.struct(columns), containsNull = false))
    case _ => None
  }

  /** An order in which all changes of one row come together. */
  def changeOrder: Seq[SortOrder] = {
    val row = form match {
      // what only comes has no other changes
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

  /** One of two sides, whose rows come with the columns `input`. */
  def apply(number: Int, joined: JoinedSide, input: Seq[Attribute]): JoinSideLayout =
    JoinSideLayout(number, JoinLayout.Names(number), RowKind.without(joined.kind, input), joined)
}

/**
 * Says in which columns a join keeps the rows of its sides, of which there may be more than two.
 *
 * {{{
 *   key    side (0 left, 1 right), join key columns, left STRUCT, right STRUCT
 *   value  left STRUCT or ARRAY, right STRUCT or ARRAY, count, matches
 * }}}
 *
 * A record of one side has NULL in the others' columns; columns that no side needs are left out. In
 * the key, a side's column holds what tells its rows apart: a key, or the whole row.
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

  /** How many columns of the key all records of one side and join key begin with. */
  val numPrefixColumns: Int = 1 + sides.head.key.size

  /** Whether rows of a join key are looked for, beside being looked up. */
  def isScanned: Boolean = keySchema.size > numPrefixColumns

  /** Where the key holds what follows the join key, for one side. */
  def suffixOrdinal(side: JoinSideLayout): Int =
    numPrefixColumns + sides.take(side.number).count(_.suffix.isDefined)

  def rowOrdinal(side: JoinSideLayout): Int = sides.take(side.number).count(_.row.isDefined)

  val countOrdinal: Int = sides.count(_.row.isDefined)

  val matchesOrdinal: Int = valueSchema.size - 1
}

object JoinLayout {
  val Names: IndexedSeq[String] = IndexedSeq("left", "right")

  private[join] def struct(columns: Seq[Expression]): StructType =
    StateColumns(columns.map { column =>
      nameOf(column) -> plain(column.dataType)
    })

  /** The column's name, without the normalization of its value. */
  private[join] def nameOf(column: Expression): String =
    DescribeNode.expression(column.transform {
      case CollationKey(child) => child
      case other => SparkRules.withoutNormalization(other)
    })

  /** The type under which state keeps values: texts by their bytes, whatever their collation. */
  private[join] def plain(dataType: DataType): DataType = dataType.transformRecursively {
    case _: StringType => StringType
  }
}

/**
 * How a watermark bounds the rows of one side of a join.
 *
 * @param late
 *   tells of a row that comes whether it is too late; none if no row can be
 * @param keyOrdinal
 *   which column of the join key is the event time by which rows go
 * @param row
 *   else the event time of a row by which it goes, and how long after, in microseconds
 */
private[join] final case class JoinSideTimeBound(
    side: JoinSideLayout,
    late: Option[Expression],
    keyOrdinal: Option[Int],
    row: Option[(Attribute, Long)]) {

  /** Whether rows go once they are over. */
  def isBounded: Boolean = keyOrdinal.isDefined || row.isDefined
}

private[join] object JoinSideTimeBound {

  /** Whether a watermark bounds the left and the right side, at whatever time. */
  def isBounded(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression]): Seq[Boolean] =
    watermark(left, right, condition).fold(Seq(false, false))(_.over(Sometime).map(_.isDefined))

  /** How long after the watermark has passed their event times rows of the result may come, in ms. */
  def delay(left: JoinSideLayout, right: JoinSideLayout, condition: Option[Expression]): Long =
    watermark(left, right, condition).fold(0L)(_.delay)

  /** None if nothing is kept of the left side: it comes at any time, and looks up rows of any time. */
  private def watermark(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression]): Option[JoinWatermark] =
    if (left.form == SideForm.Nothing) None
    else Some(JoinWatermark(left.columns, right.columns, left.key, right.key, condition))

  /** The bounds of both sides. */
  def apply(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression],
      time: BatchTime): Seq[JoinSideTimeBound] = {
    val bounds = watermark(left, right, condition)
    val sometime =
      bounds.fold(Seq.fill(2)(Option.empty[JoinBound]))(_.over(Sometime))
    val eventTimes = bounds.fold(Seq.fill(2)(Option.empty[Expression]))(_.lateBy)
    Seq(left, right).zip(sometime).zip(eventTimes).map { case ((side, bound), eventTime) =>
      JoinSideTimeBound(
        side,
        olderThan(eventTime, time.lateWatermark),
        bound.collect { case JoinBound.InKey(ordinal, _) => ordinal },
        bound.collect { case row: JoinBound.InRow =>
          // a row may come to be over before changes of it come too late
          val delay = math.max(0L, Sometime - row.watermark)
          (eventTime.get.asInstanceOf[Attribute], DateTimeUtils.millisToMicros(delay))
        })
    }
  }

  private def olderThan(
      eventTime: Option[Expression],
      watermark: Option[Long]): Option[Expression] =
    if (eventTime.isEmpty) None else WatermarkSupport.watermarkExpression(eventTime, watermark)
}
