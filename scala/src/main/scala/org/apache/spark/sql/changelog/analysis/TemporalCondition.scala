// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.plans.PassingTime

/**
 * Finds out which way a comparison goes as time passes.
 *
 * {{{
 *   at > now() - INTERVAL 1 HOUR        until some time
 *   current_date() >= valid_from        from some time on
 *   d = current_date()                  both, as two comparisons
 * }}}
 *
 * Its sides must be made of what grows with the time, such as `now() - INTERVAL 1 HOUR`, and of what
 * does not change. Around the change to daylight saving time, and at the ends of months, some of
 * these go back for a while: [[wobble]] says for how long.
 */
object TemporalCondition {

  /** The comparisons `condition` is made of, each of one direction; none if it isn't made so. */
  def split(condition: Expression): Option[Seq[Expression]] = {
    val compared = condition match {
      case EqualTo(left, right) =>
        Seq(GreaterThanOrEqual(left, right), LessThanOrEqual(left, right))
      case EqualNullSafe(left, right) =>
        Seq(GreaterThanOrEqual(left, right), LessThanOrEqual(left, right))
      case other => Seq(other)
    }
    val isPlain = condition.deterministic && !condition.exists {
      case _: PassingTime | _: Attribute => false
      case _: Unevaluable | _: SubqueryExpression => true
      case _ => false
    }
    if (isPlain && compared.forall(direction(_).isDefined)) Some(compared) else None
  }

  /** Whether it is met from some time on, and not until some time. */
  def comes(comparison: Expression): Boolean = direction(comparison).contains(1)

  /**
   * How long, in ms, `condition` may go to and fro around the time at which it changes for good; 0 if
   * it changes once.
   */
  def wobble(condition: Expression): Long = condition.collect {
    case part if PassingTime.isIn(part) => wobbleOf(part)
  }.sum

  private def direction(comparison: Expression): Option[Int] = (comparison match {
    case GreaterThan(left, right) => sum(trend(left), trend(right).map(-_))
    case GreaterThanOrEqual(left, right) => sum(trend(left), trend(right).map(-_))
    case LessThan(left, right) => sum(trend(right), trend(left).map(-_))
    case LessThanOrEqual(left, right) => sum(trend(right), trend(left).map(-_))
    case _ => None
  }).filter(_ != 0)

  /** 1 if the value grows with the time, -1 if it falls, 0 if it stays; none if it isn't known. */
  private def trend(value: Expression): Option[Int] = value match {
    case _ if !PassingTime.isIn(value) => Some(0)
    case time: PassingTime => if (time.goesOn) Some(1) else None
    case cast: Cast if keepsOrder(cast.child.dataType, cast.dataType) => trend(cast.child)
    case TimestampAddInterval(start, interval, _) => shifted(start, interval)
    case TimestampAddYMInterval(start, interval, _) => shifted(start, interval)
    case TimestampAdd(_, quantity, start, _) => shifted(start, quantity)
    case DateAdd(start, days) => shifted(start, days)
    case DateSub(start, days) => shifted(start, days)
    case DateAddInterval(start, interval, _, _) => shifted(start, interval)
    case DateAddYMInterval(start, interval) => shifted(start, interval)
    case AddMonths(start, months) => shifted(start, months)
    case TruncTimestamp(format, time, _) => shifted(time, format)
    case TruncDate(date, format) => shifted(date, format)
    case LastDay(date) => trend(date)
    case Year(date) => trend(date)
    case UnixSeconds(time) => trend(time)
    case UnixMillis(time) => trend(time)
    case UnixMicros(time) => trend(time)
    case UnixDate(date) => trend(date)
    case unix: UnixTime if unix.left.dataType != StringType => trend(unix.left)
    case DateDiff(end, start) => sum(trend(end), trend(start).map(-_))
    case SubtractDates(left, right, false) => sum(trend(left), trend(right).map(-_))
    case SubtractTimestamps(left, right, false, _) => sum(trend(left), trend(right).map(-_))
    case TimestampDiff(_, start, end, _) => sum(trend(end), trend(start).map(-_))
    case Add(left, right, _) => sum(trend(left), trend(right))
    case Subtract(left, right, _) => sum(trend(left), trend(right).map(-_))
    case _ => None
  }

  private def shifted(value: Expression, by: Expression): Option[Int] =
    if (by.foldable) trend(value) else None

  private def sum(left: Option[Int], right: Option[Int]): Option[Int] =
    for (l <- left; r <- right; if l * r >= 0) yield if (l == 0) r else l

  private def keepsOrder(from: DataType, to: DataType): Boolean = (from, to) match {
    case (
          _: DateType | _: TimestampType | _: TimestampNTZType,
          _: DateType | _: TimestampType | _: TimestampNTZType) =>
      true
    case (_: TimestampType, LongType) => true
    case (_: NumericType, _: NumericType) => Cast.canUpCast(from, to)
    case _ => false
  }

  private def wobbleOf(part: Expression): Long = part match {
    case PassingTime(date: CurrentDate) => ofZone(date)
    case PassingTime(local: LocalTimestamp) => ofZone(local)
    // a later day begins later, in every zone
    case cast: Cast if cast.child.dataType == DateType => 0L
    case cast: Cast if Cast.needsTimeZone(cast.child.dataType, cast.dataType) => ofZone(cast)
    case add: TimestampAddInterval =>
      if (addsTimeOnly(add.interval)) 0L else EndOfMonth + ofZone(add)
    case add: TimestampAddYMInterval => EndOfMonth + ofZone(add)
    case add: TimestampAdd => EndOfMonth + ofZone(add)
    case trunc: TruncTimestamp => ofZone(trunc)
    case unix: UnixTime => ofZone(unix)
    case difference: SubtractTimestamps => ofZone(difference)
    case difference: TimestampDiff => ofZone(difference)
    case _ => 0L
  }

  private def addsTimeOnly(interval: Expression): Boolean = interval.dataType match {
    case _: DayTimeIntervalType =>
      Option(interval.eval()).forall(micros => math.abs(micros.asInstanceOf[Long]) < MicrosPerDay)
    case _ => false
  }

  private def ofZone(expression: TimeZoneAwareExpression): Long =
    if (expression.zoneId.getRules.isFixedOffset) 0L else Shift

  private val Day = 24L * 60 * 60 * 1000
  private val MicrosPerDay = Day * 1000

  /** February has three days less than some months. */
  private val EndOfMonth = 4 * Day

  /** Clocks have been set by a whole day. */
  private val Shift = 2 * Day
}
