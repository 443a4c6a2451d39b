// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}

/** When a row changes by itself, as comparisons say that all must hold. */
private[time] final class ConjunctionTimes(comparisons: Seq[Expression], input: Seq[Attribute])
    extends RowTimes {
  import ConditionTimes.Never
  import RowTimes._

  private val times = comparisons.map(new ConditionTimes(_, input)).toArray

  override def find(row: InternalRow): Unit = times.foreach(_.find(row))

  override def isShown(row: InternalRow, at: Long): Boolean = times.forall(_.isMet(row, at))

  override def place(now: Long): Long = {
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
