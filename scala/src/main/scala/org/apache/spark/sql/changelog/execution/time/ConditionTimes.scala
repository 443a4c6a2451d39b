// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.TimestampType

import org.apache.spark.sql.changelog.inference.times.TemporalCondition
import org.apache.spark.sql.changelog.plans.PassingTime

/**
 * Finds out when a condition on the time changes for a row, by trying times.
 *
 * {{{
 *            met                 to and fro              not met
 *   ─────────────────────┬────────────────────────┬──────────────────
 *                   changesFrom              settledFrom
 * }}}
 * Mostly it changes once, and both are that time. Where it can go to and fro it is not known in
 * between, and has to be looked at. Both depend on the row only.
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
  private val wobble = TemporalCondition.wobble(condition)
  private val quiet = if (wobble == 0) None else Some(new QuietTimes(condition, wobble))
  predicate.initialize(0)

  /** The side of a comparison of timestamps that depends on the time, and the other. */
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

  /** How far ahead of the time, in microseconds, the side that depends on it mostly is. */
  private val ahead: Long = timestamps.fold(0L) { case (timed, _) =>
    val some = Literal(Reference * 1000, TimestampType)
    PassingTime.at(timed, some).eval().asInstanceOf[Long] - Reference * 1000
  }

  /** Whether it is met from some time on, and not until some time. */
  val comes: Boolean = TemporalCondition.comes(condition)

  /** Up to then, in ms, it is what it was at first. [[Never]] if it is that for ever. */
  var changesFrom: Long = Never

  /** From then on, in ms, it is what it comes to. [[Always]] if it has never been anything else. */
  var settledFrom: Long = Never

  /** Whether a row meets it at a time, in ms. */
  def isMet(row: InternalRow, at: Long): Boolean = {
    time.setLong(0, at * 1000)
    predicate.eval(timed(row, time))
  }

  /** Looks for the times of a row. */
  def find(row: InternalRow): Unit = {
    val guessed = guess(row)
    if (guessed != Never) setAround(guessed)
    else if (isMet(row, First) == comes) set(Always, Always)
    else if (isMet(row, Last) != comes) set(Never, Never)
    else {
      var (before, after) = (First, Last)
      while (after - before > 1) {
        val middle = before + (after - before) / 2
        if (isMet(row, middle) == comes) after = middle else before = middle
      }
      setAround(after)
    }
  }

  /** A time at which the condition changes, from the difference of its sides; [[Never]] if it's not it. */
  private def guess(row: InternalRow): Long = {
    val value = rowSide.map(_.eval(row)).orNull
    if (value == null) Never
    else {
      val first = Math.floorDiv(value.asInstanceOf[Long] - ahead, 1000L)
      if (first <= First || first >= Last - 1 || isMet(row, first - 1) == comes) Never
      else if (isMet(row, first) == comes) first
      else if (isMet(row, first + 1) == comes) first + 1
      else Never
    }
  }

  private def setAround(at: Long): Unit = {
    val around = if (quiet.forall(_.isQuiet(at))) 0L else wobble
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

  /** Before any batch: what wobbles has come to rest by 1970. */
  private val First = -1L << 40

  /** After any batch, in the year 10889. */
  private val Last = TimedRows.LastTime
}
