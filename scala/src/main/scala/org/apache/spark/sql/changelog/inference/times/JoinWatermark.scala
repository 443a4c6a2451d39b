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
 * JoinWatermark: the bounds that a watermark sets on the rows of a join. A bound comes from an
 * event time, or an event-time window, in the join key. A condition between the event times of
 * both sides gives a bound too.
 *
 * Spark finds the bounds of a condition, as in its own stream-stream joins.
 *
 * @param condition
 *   the join condition beside the key equalities
 */
final case class JoinWatermark(
    leftColumns: Seq[Attribute],
    rightColumns: Seq[Attribute],
    leftKey: Seq[Expression],
    rightKey: Seq[Expression],
    condition: Option[Expression]) {
  import JoinWatermark.ArbitraryTime

  private lazy val leftTime = eventTime(leftColumns, rightColumns)
  private lazy val rightTime = eventTime(rightColumns, leftColumns)

  /**
   * Returns the bounds of left and right rows: rows beyond a bound have no further matches.
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
   * Returns the event time of a side that decides when its rows expire. An event time used by the
   * condition is preferred. Spark solves the condition for any column, and then uses the first
   * event time.
   */
  private def eventTime(own: Seq[Attribute], other: Seq[Attribute]): Option[Attribute] = {
    val times = own.filter(EventTime.columnOf(_).isDefined)
    def isBounded(time: Attribute) =
      JoinBounds.ofCondition(time, other, condition, ArbitraryTime).isDefined
    (if (times.size > 1) times.find(isBounded) else None).orElse(times.headOption)
  }

  /**
   * Returns the event time of each side by which rows are late, if rows expire. Once rows of a
   * side expire, a late row of either side would miss matches.
   */
  def lateBy: Seq[Option[Expression]] = {
    val bounds = over(ArbitraryTime)
    val inKey = bounds.flatten.collectFirst { case JoinBound.InKey(ordinal, _) => ordinal }
    if (bounds.forall(_.isEmpty)) Seq(None, None)
    else if (inKey.isDefined) Seq(leftKey, rightKey).map(key => inKey.map(key(_)))
    else Seq(leftTime, rightTime)
  }

  /**
   * Returns the longest delay of a result row behind the watermark, in ms. Rows of a side wait
   * that long for matches.
   */
  def delay: Long =
    over(ArbitraryTime).flatten
      .map(ArbitraryTime - _.watermark)
      .foldLeft(0L)(math.max)

  /** Returns the event time that bounds the rows of each side, if any. */
  def columns: Seq[Option[String]] =
    over(ArbitraryTime)
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

  /**
   * An arbitrary watermark, in ms. The distance from watermark to bound is equal for every
   * watermark.
   */
  val ArbitraryTime = 1_000_000_000_000L

  def apply(join: Join): JoinWatermark = apply(join, EquiJoin(join))

  /** Returns the watermark of a join with a split condition. */
  def apply(join: Join, equi: EquiJoin): JoinWatermark = JoinWatermark(
    join.left.output,
    join.right.output,
    equi.key(left = true),
    equi.key(left = false),
    equi.rest.reduceOption(And(_, _)))
}

/**
 * JoinClosingTimes: the closing times of a join's rows, from the closing times of both sides.
 *
 * {{{
 *   impressions i LEFT JOIN clicks c ON c.at BETWEEN i.at AND i.at + INTERVAL 1 HOUR
 *
 *   i.at         the impression is final
 *   i.at + 1 h   all clicks that can match the impression are final
 * }}}
 *
 * A pair of rows is final when both rows are final. A padding row is final when its row is final,
 * and every possible match is final. The condition must therefore limit the event times of
 * possible matches.
 */
private[inference] object JoinClosingTimes {

  def apply(join: Join, left: Seq[ClosingTime], right: Seq[ClosingTime]): Seq[ClosingTime] = {
    val bounds = new MatchBounds(join)
    def pairs = for (l <- left; r <- right) yield (l, r)
    join.joinType match {
      case _: InnerLike =>
        pairs.flatMap { case (l, r) => bounds.untilRight(l, r) ++ bounds.untilLeft(r, l) } ++
          pairs.map { case (l, r) => l.and(r) }
      case RightOuter => pairs.flatMap { case (l, r) => bounds.untilLeft(r, l) }
      case FullOuter =>
        for {
          (l, r) <- pairs
          untilRight <- bounds.untilRight(l, r)
          untilLeft <- bounds.untilLeft(r, l)
        } yield bounds.asOne(untilRight, untilLeft)
      case _ => pairs.flatMap { case (l, r) => bounds.untilRight(l, r) }
    }
  }

  /** The bounds set by a join's condition on event times of matching rows. */
  private final class MatchBounds(join: Join) {
    private val equi = EquiJoin(join)

    /** Returns the time when a left row and its possible right matches are final. */
    def untilRight(left: ClosingTime, right: ClosingTime): Option[ClosingTime] =
      until(left, right, delay(_, _))

    /** Returns the time when a right row and its possible left matches are final. */
    def untilLeft(right: ClosingTime, left: ClosingTime): Option[ClosingTime] =
      until(right, left, (of, met) => delay(met, of, swapped = true))

    /** Returns the first non-null time, if only one is set or both are equal. */
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
            // A row whose other time is set may match rows with NULL times.
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

    /** Pairs of columns with equal, non-null values in matching rows. */
    private val equalities: Seq[(Attribute, Attribute)] =
      equi.pairs.zip(equi.matchesNull).collect { case ((l: Attribute, r: Attribute), false) =>
        (l, r)
      }

    /**
     * Returns the longest delay of a match's event time behind the event time of a row, in ms.
     *
     * @param swapped
     *   whether the row is a right row
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
        JoinBounds
          .ofCondition(own, Seq(met), join.condition, ArbitraryTime)
          .map(ArbitraryTime - _)
      }
    }
  }

  /**
   * An arbitrary time, in ms, to solve conditions for. Conditions only compare event times with
   * each other.
   */
  private val ArbitraryTime = 1L << 40
}

/** EventTime: finds columns with a watermark, by Spark's metadata. */
object EventTime {

  /** Returns the name of the event-time column, or event-time window, behind `expression`. */
  def columnOf(expression: Expression): Option[String] = expression match {
    case named: NamedExpression if named.metadata.contains(EventTimeWatermark.delayKey) =>
      Some(named.name)
    case _ => None
  }

  /**
   * Returns the first event time, or event-time window, among `columns`. Spark bounds state by
   * this column.
   */
  def firstOf(columns: Seq[Attribute]): Option[Attribute] =
    WatermarkSupport.findEventTimeColumn(columns, allowMultipleEventTimeColumns = true)
}
