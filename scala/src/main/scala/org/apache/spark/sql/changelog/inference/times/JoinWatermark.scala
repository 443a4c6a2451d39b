// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.times

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._

import org.apache.spark.sql.changelog.inference.EquiJoin

/**
 * How a watermark bounds the rows of a join: by an event time, or a window of one, in the join key,
 * or by a condition that sets the event times of both sides against each other.
 *
 * Which condition says what is found out by Spark, as for joins of its own.
 */
object JoinWatermark {

  /** A watermark, in ms: how far from it rows are over is the same for all. */
  val Sometime = 1_000_000_000_000L

  /**
   * Which rows of the left and of the right side no further row of the other one can meet.
   *
   * @param watermark
   *   in ms since 1970
   */
  def over(
      leftColumns: Seq[Attribute],
      rightColumns: Seq[Attribute],
      leftKey: Seq[Expression],
      rightKey: Seq[Expression],
      condition: Option[Expression],
      watermark: Long): Seq[Option[JoinStateWatermarkPredicate]] = {
    val predicates = StreamingSymmetricHashJoinHelper.getStateWatermarkPredicates(
      leftColumns,
      rightColumns,
      leftKey,
      rightKey,
      condition,
      eventTimeWatermarkForEviction = Some(watermark),
      eventTimeWatermarkForLateEvents = None,
      useFirstEventTimeColumn = true)
    Seq(predicates.left, predicates.right)
  }

  /**
   * By which event time of each side rows come too late: once one side's rows go, a late row of either
   * would miss some. None if no rows go.
   */
  def lateBy(
      leftColumns: Seq[Attribute],
      rightColumns: Seq[Attribute],
      leftKey: Seq[Expression],
      rightKey: Seq[Expression],
      condition: Option[Expression]): Seq[Option[Expression]] = {
    val sometime = over(leftColumns, rightColumns, leftKey, rightKey, condition, watermark = 1L)
    val inKey = sometime.flatten.collectFirst { case key: JoinStateKeyWatermarkPredicate =>
      key.expr.collectFirst { case column: BoundReference => column.ordinal }.get
    }
    Seq(leftColumns -> leftKey, rightColumns -> rightKey).map { case (columns, key) =>
      if (sometime.forall(_.isEmpty)) None
      else {
        inKey
          .map(key(_))
          .orElse(
            WatermarkSupport.findEventTimeColumn(columns, allowMultipleEventTimeColumns = true))
      }
    }
  }

  /**
   * How long after the watermark has passed their event times rows of the result may come, in ms: as
   * long as rows of a side wait for those of the other.
   */
  def delay(
      leftColumns: Seq[Attribute],
      rightColumns: Seq[Attribute],
      leftKey: Seq[Expression],
      rightKey: Seq[Expression],
      condition: Option[Expression]): Long =
    over(leftColumns, rightColumns, leftKey, rightKey, condition, Sometime).flatten
      .map(Sometime - waitsUntil(_))
      .foldLeft(0L)(math.max)

  private def waitsUntil(predicate: JoinStateWatermarkPredicate): Long = predicate match {
    case key: JoinStateKeyWatermarkPredicate => key.stateWatermark
    case row: JoinStateValueWatermarkPredicate => row.stateWatermark
  }

  /** The event time that bounds the rows of each side, where one does. */
  def columns(
      leftColumns: Seq[Attribute],
      rightColumns: Seq[Attribute],
      equi: EquiJoin): Seq[Option[String]] = {
    val condition = equi.rest.reduceOption(And(_, _))
    val keys = Seq(equi.key(left = true), equi.key(left = false))
    over(leftColumns, rightColumns, keys(0), keys(1), condition, watermark = 1L)
      .zip(Seq(leftColumns, rightColumns).zip(keys))
      .map {
        case (None, _) => None
        case (Some(predicate), (columns, key)) =>
          val named = predicate match {
            case _: JoinStateKeyWatermarkPredicate => key
            case _ => columns
          }
          named
            .flatMap(EventTime.columnOf)
            .headOption
            .orElse(named.collectFirst { case column: NamedExpression => column.name })
      }
  }
}
