// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.plans.PassingTime

/**
 * Tells times around which a condition can't go to and fro, although there are others where it does:
 * no clock is set, and no day is missing in a month.
 *
 * @param wobble
 *   how long, in ms, the condition may go to and fro around a time
 */
private[time] final class QuietTimes(condition: Expression, wobble: Long) {
  import QuietTimes._

  private val clock = BoundReference(0, TimestampType, nullable = false)
  private val time = new SpecificInternalRow(Seq(TimestampType))
  private val known = mutable.LongMap.empty[Boolean]

  private val zones =
    condition
      .collect {
        case PassingTime(time: TimeZoneAwareExpression) => time.timeZoneId
        case aware: TimeZoneAwareExpression => aware.timeZoneId
      }
      .flatten
      .distinct

  private val steps: Seq[Expression] = condition.collect {
    case part if PassingTime.isIn(part) && part.references.isEmpty => part
  }

  /** Pairs of times that stay as far apart as they are while nothing special happens. */
  private val pairs: Array[Expression] = {
    val instants =
      clock +: steps.filter(_.dataType == TimestampType).map(PassingTime.at(_, clock))
    val locals =
      for (instant <- instants; zone <- zones)
        yield Seq(Cast(instant, TimestampNTZType, Some(zone)), instant)
    val added = steps.collect {
      case step @ (_: TimestampAddInterval | _: TimestampAddYMInterval | _: TimestampAdd) =>
        Seq(PassingTime.at(step, clock), clock)
    }
    (locals ++ added).flatten.toArray
  }

  /** Whether nothing special happens around a time, in ms. */
  def isQuiet(at: Long): Boolean = {
    val day = Math.floorDiv(at, Day)
    known.getOrElseUpdate(day, compute(day * Day))
  }

  private def compute(day: Long): Boolean = {
    val distances = distancesAt(day - wobble)
    Iterator
      .iterate(day - wobble)(_ + Step)
      .takeWhile(_ <= day + Day + wobble + Step)
      .forall(at => distancesAt(at).sameElements(distances))
  }

  private def distancesAt(at: Long): Array[Long] = {
    time.setLong(0, at * 1000)
    val times = pairs.map(_.eval(time).asInstanceOf[Long])
    Array.tabulate(times.length / 2)(pair => times(2 * pair) - times(2 * pair + 1))
  }
}

private object QuietTimes {
  private val Day = 24L * 60 * 60 * 1000

  /** A clock that is set, or a day that is missing, is noticed for longer. */
  private val Step = Day / 4
}
