// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.times

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.Join

import org.apache.spark.sql.changelog.compat.{JoinBound, JoinBounds}
import org.apache.spark.sql.changelog.inference.EquiJoin

/**
 * How a watermark bounds the rows of a join: by an event time, or a window of one, in the join key,
 * or by a condition that sets the event times of both sides against each other.
 *
 * Which condition says what is found out by Spark, as for joins of its own.
 *
 * @param condition
 *   what must hold besides equal keys
 */
final case class JoinWatermark(
    leftColumns: Seq[Attribute],
    rightColumns: Seq[Attribute],
    leftKey: Seq[Expression],
    rightKey: Seq[Expression],
    condition: Option[Expression]) {
  import JoinWatermark.Sometime

  private lazy val leftTime = eventTime(leftColumns, rightColumns)
  private lazy val rightTime = eventTime(rightColumns, leftColumns)

  /**
   * Which rows of the left and of the right side no further row of the other one can meet.
   *
   * @param watermark
   *   in ms since 1970
   */
  def over(watermark: Long): Seq[Option[JoinBound]] = {
    def bounds(left: Seq[Attribute], right: Seq[Attribute]) =
      JoinBounds(left, right, leftKey, rightKey, condition, watermark)
    Seq(bounds(leftTime.toSeq, rightColumns)._1, bounds(leftColumns, rightTime.toSeq)._2)
  }

  /**
   * The event time of a side that says when its rows are over: one that the condition is about, if there is
   * any. Spark solves the condition for any column, and then looks at the first event time.
   */
  private def eventTime(own: Seq[Attribute], other: Seq[Attribute]): Option[Attribute] = {
    val times = own.filter(EventTime.columnOf(_).isDefined)
    def isBounded(time: Attribute) =
      JoinBounds.ofCondition(time, other, condition, Sometime).isDefined
    (if (times.size > 1) times.find(isBounded) else None).orElse(times.headOption)
  }

  /**
   * By which event time of each side rows come too late: once one side's rows go, a late row of either
   * would miss some. None if no rows go.
   */
  def lateBy: Seq[Option[Expression]] = {
    val sometime = over(Sometime)
    val inKey = sometime.flatten.collectFirst { case JoinBound.InKey(ordinal, _) => ordinal }
    if (sometime.forall(_.isEmpty)) Seq(None, None)
    else if (inKey.isDefined) Seq(leftKey, rightKey).map(key => inKey.map(key(_)))
    else Seq(leftTime, rightTime)
  }

  /**
   * How long after the watermark has passed their event times rows of the result may come, in ms: as
   * long as rows of a side wait for those of the other.
   */
  def delay: Long =
    over(Sometime).flatten
      .map(Sometime - _.watermark)
      .foldLeft(0L)(math.max)

  /** The event time that bounds the rows of each side, where one does. */
  def columns: Seq[Option[String]] =
    over(Sometime)
      .zip(lateBy.zip(Seq(leftKey, rightKey)))
      .map {
        case (None, _) => None
        case (Some(bound), (time, key)) =>
          val named = bound match {
            case _: JoinBound.InKey => key
            case _ => time.toSeq
          }
          named
            .flatMap(EventTime.columnOf)
            .headOption
            .orElse(named.collectFirst { case column: NamedExpression => column.name })
      }
}

object JoinWatermark {

  /** A watermark, in ms: how far from it rows are over is the same for all. */
  val Sometime = 1_000_000_000_000L

  def apply(join: Join): JoinWatermark = apply(join, EquiJoin(join))

  /** The watermark of a join whose condition is taken apart. */
  def apply(join: Join, equi: EquiJoin): JoinWatermark = JoinWatermark(
    join.left.output,
    join.right.output,
    equi.key(left = true),
    equi.key(left = false),
    equi.rest.reduceOption(And(_, _)))
}
