// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair
import org.apache.spark.sql.types.ArrayType

import org.apache.spark.sql.changelog.analysis.JoinWatermark
import org.apache.spark.sql.changelog.execution.BatchTime
import org.apache.spark.sql.changelog.plans.JoinSide

/**
 * How a watermark bounds the rows of one side of a join.
 *
 * @param isBounded
 *   whether rows go once they are over
 * @param late
 *   tells of a row that comes whether it is too late; none if no row can be
 * @param overKey
 *   tells of a join key, by ordinals, whether its rows are over after this batch
 * @param overRow
 *   tells the same of a row
 */
private[join] final case class JoinSideTimeBound(
    side: JoinSideLayout,
    isBounded: Boolean,
    late: Option[Expression],
    overKey: Option[Expression],
    overRow: Option[Expression])

private[join] object JoinSideTimeBound {

  /** Whether a watermark bounds the left and the right side, at whatever time. */
  def isBounded(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression]): Seq[Boolean] =
    over(left, right, condition, watermark = 1L).map(_.isDefined)

  private def over(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression],
      watermark: Long): Seq[Option[JoinStateWatermarkPredicate]] =
    // a side that comes at any time looks up rows of any time
    if (left.side == JoinSide.Nothing) Seq(None, None)
    else
      JoinWatermark.over(left.columns, right.columns, left.key, right.key, condition, watermark)

  /** The bounds of both sides. */
  def apply(
      left: JoinSideLayout,
      right: JoinSideLayout,
      condition: Option[Expression],
      time: BatchTime): Seq[JoinSideTimeBound] = {
    val sometime = over(left, right, condition, watermark = 1L)
    val isBounded = sometime.map(_.isDefined)
    val ordinalInKey = sometime.flatten.collectFirst { case key: JoinStateKeyWatermarkPredicate =>
      key.expr.collectFirst { case column: BoundReference => column.ordinal }.get
    }
    val moved = time.overWatermark.filter(_ > time.lateWatermark.getOrElse(0L))
    val overNow = moved.map(over(left, right, condition, _)).getOrElse(Seq(None, None))
    Seq(left, right).zip(isBounded).zip(overNow).map { case ((side, bounded), predicate) =>
      val eventTime = ordinalInKey
        .map(side.key(_))
        .orElse(WatermarkSupport
          .findEventTimeColumn(side.columns, allowMultipleEventTimeColumns = true))
      JoinSideTimeBound(
        side,
        bounded,
        // once one side's rows go, a late row of either would miss some
        if (isBounded.contains(true)) olderThan(eventTime, time.lateWatermark) else None,
        predicate.collect { case key: JoinStateKeyWatermarkPredicate => key.expr },
        predicate.collect { case row: JoinStateValueWatermarkPredicate =>
          // a row may come to be over before changes of it come too late
          olderThan(eventTime, moved).foldLeft(row.expr)(And(_, _))
        })
    }
  }

  private def olderThan(
      eventTime: Option[Expression],
      watermark: Option[Long]): Option[Expression] =
    if (eventTime.isEmpty) None else WatermarkSupport.watermarkExpression(eventTime, watermark)
}

/** Tells which records of a join's state are over. */
private[join] final class JoinStateOver(layout: JoinLayout, bounds: Seq[JoinSideTimeBound]) {
  private val byKey = bounds.map(_.overKey.map { predicate =>
    // the side stands before the join key
    Predicate.create(predicate.transform { case column: BoundReference =>
      column.copy(ordinal = column.ordinal + 1)
    })
  })
  private val byRow =
    bounds.map(bound => bound.overRow.map(Predicate.create(_, bound.side.columns)))

  def isEmpty: Boolean = (byKey ++ byRow).forall(_.isEmpty)

  /** The number of the side whose record it is. */
  def sideOf(entry: UnsafeRowPair): Int = entry.key.getByte(0).toInt

  def apply(entry: UnsafeRowPair): Boolean = {
    val number = sideOf(entry)
    byKey(number).exists(_.eval(entry.key)) ||
    byRow(number).exists(isOver => rowsOf(entry, bounds(number).side).forall(isOver.eval))
  }

  private def rowsOf(entry: UnsafeRowPair, side: JoinSideLayout): Iterator[UnsafeRow] = {
    val ordinal = layout.rowOrdinal(side)
    side.row match {
      case Some(_: ArrayType) =>
        val rows = entry.value.getArray(ordinal)
        Iterator.tabulate(rows.numElements()) { index =>
          rows.getStruct(index, side.columns.size).asInstanceOf[UnsafeRow]
        }
      case Some(_) => Iterator.single(entry.value.getStruct(ordinal, side.columns.size))
      case None =>
        Iterator.single(entry.key.getStruct(layout.suffixOrdinal(side), side.columns.size))
    }
  }
}
