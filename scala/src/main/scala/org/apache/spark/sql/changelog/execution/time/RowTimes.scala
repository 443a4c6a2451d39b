// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}

/** When a row changes by itself, as all conditions on the time together say. */
private[time] final class RowTimes(conditions: Seq[Expression], input: Seq[Attribute]) {
  import ConditionTimes.Never
  import RowTimes._

  private val times = conditions.map(new ConditionTimes(_, input)).toArray

  /** Looks for the times of a row, for [[place]]. */
  def find(row: InternalRow): Unit = times.foreach(_.find(row))

  /** Whether a row meets all conditions at a time, in ms. */
  def isShown(row: InternalRow, at: Long): Boolean = times.forall(_.isMet(row, at))

  /**
   * Where the row is kept once the time is `now`: the next time, in ms, at which it may come or go, or
   * one of the other places.
   */
  def place(now: Long): Long = {
    val entry = latestEntry(now)
    if (isOver(math.max(now, entry))) Gone
    else if (entry > now) entry
    else if (times.exists(time => time.changesFrom <= now && now < time.settledFrom)) Unsettled
    else nextExit()
  }

  /** When the last of the conditions that let the row in may do so; `now` if all have. */
  private def latestEntry(now: Long): Long = {
    var latest = now
    times.foreach(time => if (time.comes) latest = math.max(latest, time.changesFrom))
    latest
  }

  /** Whether the row is out for good when the time is `at`. */
  private def isOver(at: Long): Boolean =
    at == Never || times.exists(time => !time.comes && time.settledFrom <= at)

  private def nextExit(): Long = {
    var next = Stays
    times.foreach(time => if (!time.comes) next = math.min(next, time.changesFrom))
    next
  }
}

private[time] object RowTimes {

  /** It is out, and won't come again. */
  val Gone: Long = Long.MinValue

  /** It is in, and won't go. */
  val Stays: Long = Long.MaxValue

  /** It may come and go in any batch. */
  val Unsettled: Long = Long.MaxValue - 1

  /** Whether rows are kept there. */
  def isKept(place: Long): Boolean = place != Gone && place != Stays
}
