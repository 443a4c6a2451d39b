// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.times

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{EventTimeWatermark, Join}
import org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport

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

/**
 * When rows of a join are final, by when those of its sides are.
 *
 * {{{
 *   impressions i LEFT JOIN clicks c ON c.at BETWEEN i.at AND i.at + INTERVAL 1 HOUR
 *
 *   i.at         when the impression is final
 *   i.at + 1 h   when all clicks that can meet it are
 * }}}
 * A pair of rows is final when both are. That a row has no match is final when the row is, and all
 * rows that it could meet: the condition must say until when those may be.
 */
private[inference] object JoinClosingTimes {

  def apply(join: Join, left: Seq[ClosingTime], right: Seq[ClosingTime]): Seq[ClosingTime] = {
    val meeting = new Meeting(join)
    def pairs = for (l <- left; r <- right) yield (l, r)
    join.joinType match {
      case _: InnerLike =>
        pairs.flatMap { case (l, r) => meeting.untilRight(l, r) ++ meeting.untilLeft(r, l) } ++
          pairs.map { case (l, r) => l.and(r) }
      case RightOuter => pairs.flatMap { case (l, r) => meeting.untilLeft(r, l) }
      case FullOuter =>
        for {
          (l, r) <- pairs
          untilRight <- meeting.untilRight(l, r)
          untilLeft <- meeting.untilLeft(r, l)
        } yield meeting.asOne(untilRight, untilLeft)
      case _ => pairs.flatMap { case (l, r) => meeting.untilRight(l, r) }
    }
  }

  /** The bounds that a join's condition sets on event times of matching rows. */
  private final class Meeting(join: Join) {
    private val equi = EquiJoin(join)

    /** When a left row is final, and all right rows that it can meet. */
    def untilRight(left: ClosingTime, right: ClosingTime): Option[ClosingTime] =
      until(left, right, delay(_, _))

    /** When a right row is final, and all left rows that it can meet. */
    def untilLeft(right: ClosingTime, left: ClosingTime): Option[ClosingTime] =
      until(right, left, (of, met) => delay(met, of, swapped = true))

    /** The non-NULL one of two times, if one is NULL or they are equal. */
    def asOne(left: ClosingTime, right: ClosingTime): ClosingTime =
      (left.latestOf, right.latestOf) match {
        case (Seq(l), Seq(r)) if l.delay == r.delay && areEqual(l, r) =>
          ClosingTime(Seq(l.copy(columns = l.columns ++ r.columns)))
        case _ => left.and(right)
      }

    private def until(
        of: ClosingTime,
        met: ClosingTime,
        delay: (Attribute, Attribute) => Option[Long]): Option[ClosingTime] =
      met.latestOf.foldLeft(Option(of)) { (found, one) =>
        found.flatMap { time =>
          val bounds = for {
            (own, index) <- time.latestOf.zipWithIndex
            ownColumn <- own.columns.toSeq
            // a row that has another time may meet rows that have none
            if own.columns.size == 1 || !meetsNull(ownColumn)
            metColumn <- one.columns.toSeq
            after <- delay(ownColumn, metColumn)
          } yield (index, own.after(after + one.delay))
          bounds.minByOption(_._2.delay).map { case (index, later) =>
            ClosingTime(time.latestOf.updated(index, later))
          }
        }
      }

    private def areEqual(left: ClosingTime.DelayedTime, right: ClosingTime.DelayedTime): Boolean =
      equalities.exists { case (l, r) => left.columns.contains(l) && right.columns.contains(r) }

    private def meetsNull(column: Attribute): Boolean =
      equi.pairs.zip(equi.matchesNull).exists { case ((left, right), matchesNull) =>
        matchesNull && (left.references ++ right.references).contains(column)
      }

    /** Pairs of columns that are equal in rows that meet, and not NULL. */
    private val equalities: Seq[(Attribute, Attribute)] =
      equi.pairs.zip(equi.matchesNull).collect { case ((l: Attribute, r: Attribute), false) =>
        (l, r)
      }

    /**
     * How long after the event time of a row those of the rows may be that it meets, in ms.
     *
     * @param swapped
     *   whether the row is a right one
     */
    private def delay(
        left: Attribute,
        right: Attribute,
        swapped: Boolean = false): Option[Long] = {
      val (own, met) = if (swapped) (right, left) else (left, right)
      val equal = equi.pairs.exists {
        case (l: Attribute, r: Attribute) => l.exprId == left.exprId && r.exprId == right.exprId
        case _ => false
      }
      if (equal) Some(0L)
      else {
        JoinBounds.ofCondition(own, Seq(met), join.condition, Sometime).map(Sometime - _)
      }
    }
  }

  /** A time, in ms, for which conditions are solved: they set times against each other only. */
  private val Sometime = 1L << 40
}

/** Finds columns a watermark is set on, as Spark marks them. */
object EventTime {

  /** The name of the event time column (or window of one) that `expression` is, if it is one. */
  def columnOf(expression: Expression): Option[String] = expression match {
    case named: NamedExpression if named.metadata.contains(EventTimeWatermark.delayKey) =>
      Some(named.name)
    case _ => None
  }

  /** The first event time, or window of one, among `columns`: that by which Spark bounds a state. */
  def firstOf(columns: Seq[Attribute]): Option[Attribute] =
    WatermarkSupport.findEventTimeColumn(columns, allowMultipleEventTimeColumns = true)
}
