// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.times

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.plans.PassingTime

/**
 * Normalizes conditions on the current time to comparisons joined by AND and OR. For each
 * comparison, the direction of its change over time is known.
 *
 * {{{
 *   at > now() - INTERVAL 1 HOUR        true until some time
 *   current_date() >= valid_from        true from some time on
 *   d = current_date()                  both, as two comparisons
 *   at > now() OR pinned                true until some time, or forever
 * }}}
 *
 * In this form NULL counts as false, because NOT applies only to parts independent of the time.
 *
 * Both sides of a comparison must be constant over time, or monotonic, such as `now() - INTERVAL
 * 1 HOUR`. Daylight saving time and month ends can make a side go back for a while.
 * [[dstAmbiguity]] returns the length of that interval.
 */
object TemporalCondition extends PredicateHelper {

  /** Returns the normalized conjuncts of `condition`, or None if normalization is impossible. */
  def split(condition: Expression): Option[Seq[Expression]] =
    if (isPlain(condition)) positive(condition).map(splitConjunctivePredicates) else None

  /**
   * Returns the normalized condition that `condition` is false or NULL, if normalization is
   * possible.
   */
  def untrue(condition: Expression): Option[Expression] =
    if (isPlain(condition)) positive(condition).flatMap(notTrue) else None

  private def isPlain(condition: Expression): Boolean =
    condition.deterministic && !condition.exists {
      case _: PassingTime | _: Attribute => false
      case _: Unevaluable | _: SubqueryExpression => true
      case _ => false
    }

  /** Whether the passing of time can only make `condition` true. */
  def onlyBecomesTrue(condition: Expression): Boolean =
    !condition.exists(hasDirection(_, way = -1))

  /** Whether the passing of time can only make `condition` false. */
  def onlyBecomesFalse(condition: Expression): Boolean =
    !condition.exists(hasDirection(_, way = 1))

  private def hasDirection(comparison: Expression, way: Int): Boolean =
    PassingTime.isIn(comparison) && direction(comparison).contains(way)

  private def positive(condition: Expression): Option[Expression] = condition match {
    case _ if !PassingTime.isIn(condition) => Some(condition)
    case And(left, right) => both(positive(left), positive(right))(And(_, _))
    case Or(left, right) => both(positive(left), positive(right))(Or(_, _))
    case Not(child) => negative(child)
    case EqualTo(left, right) => equal(left, right)
    case EqualNullSafe(left, right) if !left.nullable || !right.nullable => equal(left, right)
    case In(value, list) => positive(anyOf(value, list))
    case If(choice, yes, no) => chosen(choice, positive(yes), positive(no))
    case choices: CaseWhen => positive(nested(choices))
    case comparison if direction(comparison).isDefined => Some(comparison)
    case _ => None
  }

  /** Returns the negation of `condition`, which is NULL where `condition` is NULL. */
  private def negative(condition: Expression): Option[Expression] = condition match {
    case _ if !PassingTime.isIn(condition) => Some(Not(condition))
    case And(left, right) => both(negative(left), negative(right))(Or(_, _))
    case Or(left, right) => both(negative(left), negative(right))(And(_, _))
    case Not(child) => positive(child)
    case EqualTo(left, right) =>
      both(positive(LessThan(left, right)), positive(GreaterThan(left, right)))(Or(_, _))
    case EqualNullSafe(left, right) if !left.nullable || !right.nullable =>
      both(negative(EqualTo(left, right)), anyNull(left, right))(Or(_, _))
    case In(value, list) => negative(anyOf(value, list))
    case If(choice, yes, no) => chosen(choice, negative(yes), negative(no))
    case choices: CaseWhen => negative(nested(choices))
    case GreaterThan(left, right) => positive(LessThanOrEqual(left, right))
    case GreaterThanOrEqual(left, right) => positive(LessThan(left, right))
    case LessThan(left, right) => positive(GreaterThanOrEqual(left, right))
    case LessThanOrEqual(left, right) => positive(GreaterThan(left, right))
    case _ => None
  }

  /** Returns the condition that the normalized `condition` is false or NULL. */
  private def notTrue(condition: Expression): Option[Expression] = condition match {
    case _ if !PassingTime.isIn(condition) =>
      Some(Not(EqualNullSafe(condition, Literal.TrueLiteral)))
    case And(left, right) => both(notTrue(left), notTrue(right))(Or(_, _))
    case Or(left, right) => both(notTrue(left), notTrue(right))(And(_, _))
    case comparison =>
      both(negative(comparison), anyNull(comparison.children: _*))(Or(_, _))
  }

  /** Returns the condition that one of `values` is NULL, if independent of the time. */
  private def anyNull(values: Expression*): Option[Expression] = {
    val nullable = values.filter(_.nullable)
    if (nullable.exists(PassingTime.isIn)) None
    else Some(nullable.map(IsNull(_)).reduceOption[Expression](Or(_, _)).getOrElse(Never))
  }

  private def chosen(
      choice: Expression,
      yes: Option[Expression],
      no: Option[Expression]): Option[Expression] = for {
    met <- positive(choice)
    notMet <- notTrue(met)
    ifMet <- yes
    otherwise <- no
  } yield Or(And(met, ifMet), And(notMet, otherwise))

  private def nested(choices: CaseWhen): Expression =
    choices.branches.foldRight(choices.elseValue.getOrElse(Literal(null, BooleanType))) {
      case ((choice, value), otherwise) => If(choice, value, otherwise)
    }

  private def equal(left: Expression, right: Expression): Option[Expression] =
    both(positive(GreaterThanOrEqual(left, right)), positive(LessThanOrEqual(left, right)))(
      And(_, _))

  private def anyOf(value: Expression, list: Seq[Expression]): Expression =
    list.map(EqualTo(value, _)).reduce[Expression](Or(_, _))

  private def both(left: Option[Expression], right: Option[Expression])(
      join: (Expression, Expression) => Expression): Option[Expression] =
    for (l <- left; r <- right) yield join(l, r)

  /**
   * Returns the length of the interval, in ms, in which `condition` can flip before it changes
   * for good. Daylight saving time and month ends cause flips. 0 if the condition changes once.
   */
  def dstAmbiguity(condition: Expression): Long = condition.collect {
    case part if PassingTime.isIn(part) => ambiguityOf(part)
  }.sum

  private def direction(comparison: Expression): Option[Int] = (comparison match {
    case GreaterThan(left, right) => sum(trend(left), trend(right).map(-_))
    case GreaterThanOrEqual(left, right) => sum(trend(left), trend(right).map(-_))
    case LessThan(left, right) => sum(trend(right), trend(left).map(-_))
    case LessThanOrEqual(left, right) => sum(trend(right), trend(left).map(-_))
    case _ => None
  }).filter(_ != 0)

  /**
   * Returns 1 for a value that grows over time, -1 for a falling value and 0 for a constant, if
   * known.
   */
  private def trend(value: Expression): Option[Int] = value match {
    case _ if !PassingTime.isIn(value) => Some(0)
    case time: PassingTime => if (time.advances) Some(1) else None
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

  private def ambiguityOf(part: Expression): Long = part match {
    case PassingTime(date: CurrentDate) => ofZone(date)
    case PassingTime(local: LocalTimestamp) => ofZone(local)
    // A later day begins later, in every time zone.
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

  private val Never = Literal.FalseLiteral

  private val Day = 24L * 60 * 60 * 1000
  private val MicrosPerDay = Day * 1000

  /** February has three days less than some months. */
  private val EndOfMonth = 4 * Day

  /** Some time zones have moved their clocks by a whole day. */
  private val Shift = 2 * Day
}
