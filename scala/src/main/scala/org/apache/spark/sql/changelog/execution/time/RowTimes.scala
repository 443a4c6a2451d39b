// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, Or}

/** When a row changes by itself, as conditions on the time together say. */
private[time] trait RowTimes {

  /** Looks for the times of a row, for [[place]]. */
  def find(row: InternalRow): Unit

  /** Whether a row meets all conditions at a time, in ms. */
  def isShown(row: InternalRow, at: Long): Boolean

  /**
   * Where the row is kept once the time is `now`: the next time, in ms, at which it may come or go, or
   * one of the other places.
   */
  def place(now: Long): Long
}

private[time] object RowTimes {

  /** The times of rows with the columns `input`. */
  def apply(conditions: Seq[Expression], input: Seq[Attribute]): RowTimes =
    if (conditions.exists(_.isInstanceOf[Or])) new ConditionTree(conditions, input)
    else new ConjunctionTimes(conditions, input)

  /** The row is out, and won't come again. */
  val Gone: Long = Long.MinValue

  /** The row is in, and won't go. */
  val Stays: Long = Long.MaxValue

  /** The row may come and go in any batch. */
  val Unsettled: Long = Long.MaxValue - 1

  /** Whether rows are kept there. */
  def isKept(place: Long): Boolean = place != Gone && place != Stays
}
