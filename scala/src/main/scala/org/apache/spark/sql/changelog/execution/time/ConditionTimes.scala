// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.inference.times.TemporalCondition
import org.apache.spark.sql.changelog.plans.PassingTime

/**
 * Finds the time at which a condition on the current time changes for a row, by evaluating the condition at
 * several times.
 *
 * {{{
 *            met                ambiguous               not met
 *   ─────────────────────┬────────────────────────┬──────────────────
 *                   changesFrom              settledFrom
 * }}}
 * Most conditions change once, and both times are equal. With a DST ambiguity, the condition may switch
 * repeatedly between the two times and has to be evaluated in each batch. Both times depend on the row only.
 *
 * @param input
 *   the columns of a row
 */
private[time] final class ConditionTimes(condition: Expression, input: Seq[Attribute]) {
  import ConditionTimes._

  private val clock = AttributeReference("clock", TimestampType, nullable = false)()
  private val predicate = Predicate.create(PassingTime.at(condition, clock), input :+ clock)
  private val time = new SpecificInternalRow(Seq(TimestampType))
  private val timed = new JoinedRow
  private val dstAmbiguity = TemporalCondition.dstAmbiguity(condition)
  private val monotonic =
    if (dstAmbiguity == 0) None else Some(new MonotonicDays(condition, dstAmbiguity))
  predicate.initialize(0)

  /** The side of a timestamp comparison that depends on the current time, and the other side. */
  private val timestamps: Option[(Expression, Expression)] = condition match {
    case BinaryComparison(left, right) if left.dataType == TimestampType =>
      Seq((left, right), (right, left)).find { case (timed, other) =>
        timed.references.isEmpty && !PassingTime.isIn(other)
      }
    case _ => None
  }

  private val rowSide = timestamps.map { case (_, other) =>
    BindReferences.bindReference(other, AttributeSeq(input))
  }

  /** The usual distance, in microseconds, of the time-dependent side from the current time. */
  private val ahead: Long = timestamps.fold(0L) { case (timed, _) =>
    val some = Literal(Reference * 1000, TimestampType)
    PassingTime.at(timed, some).eval().asInstanceOf[Long] - Reference * 1000
  }

  /** Whether the condition is met from some time on. If not, it is met until some time. */
  val becomesTrue: Boolean = TemporalCondition.onlyBecomesTrue(condition)

  /** The time, in ms, before which the condition has its first value. [[Never]] if the condition never changes. */
  var changesFrom: Long = Never

  /** The time, in ms, from which the condition has its final value. [[Always]] if it never had another value. */
  var settledFrom: Long = Never

  /** Returns whether a row meets the condition at a time, in ms. */
  def isMet(row: InternalRow, at: Long): Boolean = {
    time.setLong(0, at * 1000)
    predicate.eval(timed(row, time))
  }

  /** Computes [[changesFrom]] and [[settledFrom]] for a row. */
  def find(row: InternalRow): Unit = {
    val guessed = guess(row)
    if (guessed != Never) setAround(guessed)
    else if (isMet(row, First) == becomesTrue) set(Always, Always)
    else if (isMet(row, Last) != becomesTrue) set(Never, Never)
    else {
      var (before, after) = (First, Last)
      while (after - before > 1) {
        val middle = before + (after - before) / 2
        if (isMet(row, middle) == becomesTrue) after = middle else before = middle
      }
      setAround(after)
    }
  }

  /**
   * Guesses the time at which the condition changes from the difference of its sides; [[Never]] if the guess is
   * wrong.
   */
  private def guess(row: InternalRow): Long = {
    val value = rowSide.map(_.eval(row)).orNull
    if (value == null) Never
    else {
      val first = Math.floorDiv(value.asInstanceOf[Long] - ahead, 1000L)
      if (first <= First || first >= Last - 1 || isMet(row, first - 1) == becomesTrue) Never
      else if (isMet(row, first) == becomesTrue) first
      else if (isMet(row, first + 1) == becomesTrue) first + 1
      else Never
    }
  }

  private def setAround(at: Long): Unit = {
    val around = if (monotonic.forall(_.isMonotonic(at))) 0L else dstAmbiguity
    set(at - around, at + around)
  }

  private def set(changes: Long, settled: Long): Unit = {
    changesFrom = changes
    settledFrom = settled
  }
}

private[time] object ConditionTimes {
  val Always: Long = Long.MinValue
  val Never: Long = Long.MaxValue

  /** A time in 2027, in ms. */
  private val Reference = 1800000000000L

  /** Before every batch. A DST ambiguity around this time has ended by 1970. */
  private val First = -1L << 40

  /** After every batch, in the year 10889. */
  private val Last = TimedRows.LastTime
}

/**
 * The transitions of a row under comparisons combined by AND and OR.
 *
 * {{{
 *   at > now() OR now() > until OR pinned
 *
 *   ─────────────┐ at          until ┌──────────────     pinned is false
 *       in       └───────────────────┘      in
 *   ────────────────────────────────────────────────     pinned is true
 * }}}
 * A row may appear and disappear several times, whenever a comparison changes. The next transition is the next
 * time at which such a change affects the whole condition.
 */
private[time] final class ConditionTree(conditions: Seq[Expression], input: Seq[Attribute])
    extends RowTimes {
  import ConditionTree._
  import RowTimes._

  private val comparisons = mutable.ArrayBuffer.empty[Comparison]
  private val root = AllOf(conditions.map(conditionOf))

  override def find(row: InternalRow): Unit = root.find(row)

  override def isShown(row: InternalRow, at: Long): Boolean = root.isMet(row, at)

  override def nextTransition(now: Long): Long = root.at(now) match {
    case Unknown => Recheck
    case value =>
      val changes = comparisons.iterator.map(_.times.changesFrom).filter(_ > now).toArray.sorted
      changes
        .find(time => time != ConditionTimes.Never && root.at(time) != value)
        .getOrElse(if (value == Met) Permanent else Expired)
  }

  private def conditionOf(condition: Expression): Condition = condition match {
    case And(left, right) => AllOf(Seq(conditionOf(left), conditionOf(right)))
    case Or(left, right) => AnyOf(Seq(conditionOf(left), conditionOf(right)))
    case _ if PassingTime.isIn(condition) =>
      val comparison = new Comparison(new ConditionTimes(condition, input))
      comparisons += comparison
      comparison
    case _ => new Fixed(Predicate.create(condition, input))
  }
}

private object ConditionTree {

  /** The value of a condition at a time. */
  private type TruthValue = Int
  private val NotMet = 0
  private val Unknown = 1
  private val Met = 2

  private sealed trait Condition {
    def find(row: InternalRow): Unit
    def isMet(row: InternalRow, at: Long): Boolean

    /** Returns the value for the row last passed to `find`. */
    def at(time: Long): TruthValue
  }

  private case class AllOf(conditions: Seq[Condition]) extends Condition {
    override def find(row: InternalRow): Unit = conditions.foreach(_.find(row))
    override def isMet(row: InternalRow, at: Long): Boolean = conditions.forall(_.isMet(row, at))
    override def at(time: Long): TruthValue = conditions.iterator.map(_.at(time)).min
  }

  private case class AnyOf(conditions: Seq[Condition]) extends Condition {
    override def find(row: InternalRow): Unit = conditions.foreach(_.find(row))
    override def isMet(row: InternalRow, at: Long): Boolean = conditions.exists(_.isMet(row, at))
    override def at(time: Long): TruthValue = conditions.iterator.map(_.at(time)).max
  }

  private class Comparison(val times: ConditionTimes) extends Condition {
    override def find(row: InternalRow): Unit = times.find(row)
    override def isMet(row: InternalRow, at: Long): Boolean = times.isMet(row, at)
    override def at(time: Long): TruthValue =
      if (time >= times.settledFrom) truthOf(times.becomesTrue)
      else if (time >= times.changesFrom) Unknown
      else truthOf(!times.becomesTrue)
  }

  /** A condition independent of the current time. */
  private class Fixed(predicate: BasePredicate) extends Condition {
    private var value = NotMet
    predicate.initialize(0)

    override def find(row: InternalRow): Unit = value = truthOf(predicate.eval(row))
    override def isMet(row: InternalRow, at: Long): Boolean = predicate.eval(row)
    override def at(time: Long): TruthValue = value
  }

  private def truthOf(isMet: Boolean): TruthValue = if (isMet) Met else NotMet
}

/** The transitions of a row under comparisons combined by AND. */
private[time] final class ConjunctionTimes(comparisons: Seq[Expression], input: Seq[Attribute])
    extends RowTimes {
  import ConditionTimes.Never
  import RowTimes._

  private val times = comparisons.map(new ConditionTimes(_, input)).toArray

  override def find(row: InternalRow): Unit = times.foreach(_.find(row))

  override def isShown(row: InternalRow, at: Long): Boolean = times.forall(_.isMet(row, at))

  override def nextTransition(now: Long): Long = {
    val entry = latestEntry(now)
    if (isOver(math.max(now, entry))) Expired
    else if (entry > now) entry
    else if (times.exists(time => time.changesFrom <= now && now < time.settledFrom)) Recheck
    else nextExit()
  }

  /** Returns the time at which the last of the pending comparisons may become true; `now` if none is pending. */
  private def latestEntry(now: Long): Long = {
    var latest = now
    times.foreach(time => if (time.becomesTrue) latest = math.max(latest, time.changesFrom))
    latest
  }

  /** Returns whether the row will never be visible again from the time `at` on. */
  private def isOver(at: Long): Boolean =
    at == Never || times.exists(time => !time.becomesTrue && time.settledFrom <= at)

  private def nextExit(): Long = {
    var next = Permanent
    times.foreach(time => if (!time.becomesTrue) next = math.min(next, time.changesFrom))
    next
  }
}

/** The transitions of a row under conditions on the current time. */
private[time] trait RowTimes {

  /** Computes the times of a row, for [[nextTransition]]. */
  def find(row: InternalRow): Unit

  /** Whether a row meets all conditions at a time, in ms. */
  def isShown(row: InternalRow, at: Long): Boolean

  /**
   * The next time after `now`, in ms, at which the row may start or stop meeting the conditions;
   * `Expired`, `Permanent` or `Recheck` if there is no such time.
   */
  def nextTransition(now: Long): Long
}

private[time] object RowTimes {

  /** Returns the transitions of rows with the columns `input`. */
  def apply(conditions: Seq[Expression], input: Seq[Attribute]): RowTimes =
    if (conditions.exists(_.isInstanceOf[Or])) new ConditionTree(conditions, input)
    else new ConjunctionTimes(conditions, input)

  /** The row will never meet the conditions again. */
  val Expired: Long = Long.MinValue

  /** The row will always meet the conditions. */
  val Permanent: Long = Long.MaxValue

  /** The row may appear or disappear in any batch, for example around a change of daylight saving time. */
  val Recheck: Long = Long.MaxValue - 1

  /** Returns whether rows with this next transition are stored. */
  def isKept(place: Long): Boolean = place != Expired && place != Permanent
}

/**
 * Finds times around which a condition cannot switch repeatedly, for a condition with a DST ambiguity: no clock
 * change, and no missing day in a month.
 *
 * @param dstAmbiguity
 *   the length of the ambiguity, in ms, before and after a time
 */
private[time] final class MonotonicDays(condition: Expression, dstAmbiguity: Long) {
  import MonotonicDays._

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

  /** Pairs of times with a constant distance, except around clock changes and missing days. */
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

  /** Returns whether no clock change or missing day is near a time, in ms. */
  def isMonotonic(at: Long): Boolean = {
    val day = Math.floorDiv(at, Day)
    known.getOrElseUpdate(day, compute(day * Day))
  }

  private def compute(day: Long): Boolean = {
    val distances = distancesAt(day - dstAmbiguity)
    Iterator
      .iterate(day - dstAmbiguity)(_ + Step)
      .takeWhile(_ <= day + Day + dstAmbiguity + Step)
      .forall(at => distancesAt(at).sameElements(distances))
  }

  private def distancesAt(at: Long): Array[Long] = {
    time.setLong(0, at * 1000)
    val times = pairs.map(_.eval(time).asInstanceOf[Long])
    Array.tabulate(times.length / 2)(pair => times(2 * pair) - times(2 * pair + 1))
  }
}

private object MonotonicDays {
  private val Day = 24L * 60 * 60 * 1000

  /** A clock change or a missing day changes distances for longer than this step. */
  private val Step = Day / 4
}
