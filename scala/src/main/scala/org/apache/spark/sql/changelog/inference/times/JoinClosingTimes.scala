// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.times

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.Join

import org.apache.spark.sql.changelog.compat.JoinBounds
import org.apache.spark.sql.changelog.inference.EquiJoin

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

  /** What a join's condition says of the event times of rows that meet. */
  private final class Meeting(join: Join) {
    private val equi = EquiJoin(join)

    /** When a left row is final, and all right rows that it can meet. */
    def untilRight(left: ClosingTime, right: ClosingTime): Option[ClosingTime] =
      until(left, right, delay(_, _))

    /** When a right row is final, and all left rows that it can meet. */
    def untilLeft(right: ClosingTime, left: ClosingTime): Option[ClosingTime] =
      until(right, left, (of, met) => delay(met, of, swapped = true))

    /** Of two times of which one is NULL, unless they are equal, one. */
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
