// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.TimestampType

import org.apache.spark.sql.changelog.analysis.TemporalCondition
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
    if (isMet(row, First) == comes) set(Always, Always)
    else if (isMet(row, Last) != comes) set(Never, Never)
    else {
      var (before, after) = (First, Last)
      while (after - before > 1) {
        val middle = before + (after - before) / 2
        if (isMet(row, middle) == comes) after = middle else before = middle
      }
      val around = if (quiet.forall(_.isQuiet(after))) 0L else wobble
      set(after - around, after + around)
    }
  }

  private def set(changes: Long, settled: Long): Unit = {
    changesFrom = changes
    settledFrom = settled
  }
}

private[time] object ConditionTimes {
  val Always: Long = Long.MinValue
  val Never: Long = Long.MaxValue

  /** Before any batch: what wobbles has come to rest by 1970. */
  private val First = -1L << 40

  /** After any batch, in the year 10889. */
  private val Last = TimedRows.LastTime
}
