// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import java.time.{LocalDateTime, ZoneId}

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.inference.times.TemporalCondition
import org.apache.spark.sql.changelog.plans.PassingTime

/** Rows are looked at when [[RowTimes]] says so, at times drawn at random, and are as they should be. */
class RowTimesSuite extends AnyFunSuite {
  private val at = AttributeReference("at", TimestampType)()
  private val day = AttributeReference("day", DateType)()
  private val local = AttributeReference("local", TimestampNTZType)()
  private val columns = Seq(at, day, local)
  private val now = PassingTime(Now())

  private val Minute = 60000L
  private val Hour = 60 * Minute
  private val Day = 24 * Hour

  /** Conditions in a zone, the seconds that rows are about behind the time. */
  private def conditions(zone: String): Seq[(Expression, Long)] = {
    val tz = Some(zone)
    val today = PassingTime(CurrentDate(tz))
    val localNow = PassingTime(LocalTimestamp(tz))
    def micros(ms: Long) = Literal(ms * 1000, DayTimeIntervalType())
    def ago(ms: Long) = TimestampAddInterval(now, micros(-ms), tz)
    def months(count: Int) =
      TimestampAddYMInterval(now, Literal(-count, YearMonthIntervalType()), tz)
    def text(value: String) = Literal(UTF8String.fromString(value), StringType)
    Seq(
      GreaterThan(at, ago(Hour)) -> Hour,
      LessThanOrEqual(at, now) -> 0L,
      GreaterThan(at, ago(Day)) -> Day,
      GreaterThanOrEqual(at, ago(30 * Day)) -> 30 * Day,
      GreaterThan(at, months(1)) -> 30 * Day,
      LessThan(at, months(1)) -> 30 * Day,
      GreaterThan(at, months(12)) -> 365 * Day,
      GreaterThan(at, TimestampAdd("MONTH", Literal(-1L), now, tz)) -> 30 * Day,
      GreaterThanOrEqual(day, DateSub(today, Literal(3))) -> 3 * Day,
      LessThanOrEqual(day, today) -> 0L,
      GreaterThan(day, AddMonths(today, Literal(-1))) -> 30 * Day,
      GreaterThanOrEqual(at, Cast(today, TimestampType, tz)) -> 0L,
      GreaterThanOrEqual(at, TruncTimestamp(text("HOUR"), now, tz)) -> 0L,
      GreaterThanOrEqual(at, TruncTimestamp(text("MONTH"), now, tz)) -> 10 * Day,
      GreaterThan(local, localNow) -> 0L,
      GreaterThan(Cast(local, TimestampType, tz), ago(Day)) -> Day,
      LessThan(SubtractTimestamps(now, at, legacyInterval = false, tz), micros(Day)) -> Day,
      LessThan(DateDiff(today, day), Literal(7)) -> 7 * Day,
      GreaterThan(Cast(at, DateType, tz), Cast(months(1), DateType, tz)) -> 30 * Day)
  }

  private def valuesAt(ms: Long, zone: ZoneId): InternalRow = {
    val time = java.time.Instant.ofEpochMilli(ms)
    val date = time.atZone(zone).toLocalDate.toEpochDay.toInt
    val wall = LocalDateTime.ofInstant(time, zone).toInstant(java.time.ZoneOffset.UTC)
    InternalRow(ms * 1000, date, wall.toEpochMilli * 1000)
  }

  private def check(conditions: Seq[Expression], row: InternalRow, steps: Seq[Long]): Unit = {
    val times = RowTimes(conditions, columns)
    times.find(row)
    var place = times.nextTransition(steps.head)
    var shown = times.isShown(row, steps.head)
    steps.tail.foreach { now =>
      val isLooked = place == RowTimes.Recheck || (RowTimes.isKept(place) && place <= now)
      if (isLooked) {
        times.find(row)
        place = times.nextTransition(now)
        shown = times.isShown(row, now)
      }
      val expected = times.isShown(row, now)
      assert(
        shown == expected,
        s"at ${java.time.Instant.ofEpochMilli(now)}, at ${row.getLong(0) / 1000}, kept at $place")
    }
  }

  for (zone <- Seq("UTC", "America/New_York", "Australia/Lord_Howe", "America/Havana")) {
    test(s"rows come and go when batch Spark says, in $zone") {
      val random = new Random(20)
      val zoneId = ZoneId.of(zone)
      val transitions = Seq("2027-03-01", "2027-10-20").map { from =>
        val start = java.time.LocalDate.parse(from).atStartOfDay(zoneId).toInstant
        Option(zoneId.getRules.nextTransition(start)).fold(start)(_.getInstant).toEpochMilli
      }
      val monthEnd = LocalDateTime.of(2027, 3, 30, 0, 0).atZone(zoneId).toInstant.toEpochMilli
      for {
        (condition, behind) <- conditions(zone)
        center <- transitions :+ monthEnd
        _ <- 1 to 12
      } withClue(s"$condition ") {
        assert(TemporalCondition.split(condition).isDefined)
        // the condition changes about when something special happens, or when its value is there
        val shift = if (random.nextBoolean()) behind else 0L
        val value = center - shift + random.nextInt(4 * Day.toInt) - 2 * Day
        val start = value + behind - 5 * Day
        val steps = Iterator
          .iterate(start)(
            _ + random.nextInt(if (random.nextInt(4) == 0) Day.toInt else Hour.toInt))
          .takeWhile(_ < start + 10 * Day)
          .toSeq
        check(Seq(condition), valuesAt(value, zoneId), steps)
      }
    }
  }

  test("rows come and go when batch Spark says, by conditions joined by OR and NOT") {
    val random = new Random(21)
    val zone = ZoneId.of("Australia/Lord_Howe")
    val all = conditions(zone.getId)
    val monthEnd = LocalDateTime.of(2027, 3, 30, 0, 0).atZone(zone).toInstant.toEpochMilli
    def some(): Expression = all(random.nextInt(all.size))._1
    for (_ <- 1 to 150) {
      val joined = random.nextInt(4) match {
        case 0 => Or(some(), some())
        case 1 => Not(And(some(), some()))
        case 2 => And(Or(some(), Not(some())), Or(some(), some()))
        case _ => Or(And(some(), some()), And(Not(some()), IsNotNull(at)))
      }
      withClue(s"$joined ") {
        val value = monthEnd - random.nextInt(40) * Day - random.nextInt(Day.toInt)
        val steps = Iterator
          .iterate(value - 3 * Day)(
            _ + random.nextInt(if (random.nextInt(8) == 0) 6 * Day.toInt else 5 * Hour.toInt))
          .takeWhile(_ < value + 50 * Day)
          .toSeq
        check(TemporalCondition.split(joined).get, valuesAt(value, zone), steps)
      }
    }
  }

  test("a condition that changes once is not looked at before") {
    val hourAgo =
      TimestampAddInterval(now, Literal(-Hour * 1000, DayTimeIntervalType()), Some("UTC"))
    val times = RowTimes(Seq(GreaterThan(at, hourAgo), LessThanOrEqual(at, now)), columns)
    val row = InternalRow(100 * Hour * 1000 + 500, 0, 0L)
    times.find(row)
    assert(times.nextTransition(0) == 100 * Hour + 1)
    assert(times.nextTransition(100 * Hour + 1) == 101 * Hour + 1)
    assert(!times.isShown(row, 100 * Hour) && times.isShown(row, 100 * Hour + 1))
    assert(times.isShown(row, 101 * Hour) && !times.isShown(row, 101 * Hour + 1))
    assert(times.nextTransition(101 * Hour + 1) == RowTimes.Expired)
  }

  test("NULL is never in, and a month without a gap changes once") {
    val month = TimestampAddYMInterval(now, Literal(-1, YearMonthIntervalType()), Some("UTC"))
    val times = RowTimes(Seq(GreaterThan(at, month)), columns)
    times.find(InternalRow(null, null, null))
    assert(times.nextTransition(0) == RowTimes.Expired)
    def ms(text: String) = java.time.Instant.parse(text).toEpochMilli
    times.find(InternalRow(ms("2027-06-10T12:00:00Z") * 1000, null, null))
    assert(times.nextTransition(ms("2027-06-10T12:00:00Z")) == ms("2027-07-10T12:00:00Z"))
    times.find(InternalRow(ms("2027-02-28T12:00:00Z") * 1000, null, null))
    assert(times.nextTransition(ms("2027-03-29T12:00:00Z")) == RowTimes.Recheck)
  }
}
