// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

/** One of an operator's numbers, and what it is called: here alone. */
sealed trait OperatorNumber {

  /** In JSON and in Spark's metrics. */
  def name: String

  /** In `changelog_status()`. */
  def column: String

  /** Above a table for people; none where others tell it. */
  def head: Option[String]
}

object OperatorNumber {

  /**
   * Counts something.
   *
   * @param isTime
   *   whether it counts milliseconds, which a column has as seconds
   * @param value
   *   none where it is not known
   */
  final case class Count(
      name: String,
      column: String,
      head: Option[String],
      isTime: Boolean = false)(val value: OperatorNumbers => Option[Long])
      extends OperatorNumber

  /** Compares two of them. */
  final case class Ratio(name: String, column: String, head: Option[String])(
      val value: OperatorNumbers => Option[Double])
      extends OperatorNumber

  private def count(name: String, column: String, head: String)(
      value: OperatorNumbers => Long): Count =
    Count(name, column, Some(head))(numbers => Some(value(numbers)))

  /** Rows that have gone on, of each kind. */
  val kinds: Seq[Count] = Seq(
    count("inserts", "inserts", "+I")(_.inserts),
    count("updatePreimages", "update_preimages", "-U")(_.updatePreimages),
    count("updatePostimages", "update_postimages", "+U")(_.updatePostimages),
    count("deletes", "deletes", "-D")(_.deletes))

  val all: Seq[OperatorNumber] = Seq(
    Count("rowsIn", "rows_in", Some("rows in"))(_.rowsIn),
    Count("rowsOut", "rows_out", None)(numbers => Some(numbers.rowsOut))) ++ kinds ++ Seq(
    Ratio("churn", "churn", Some("churn"))(_.churn),
    count("unmatchedRetractions", "unmatched_retractions", "unmatched")(_.unmatched),
    count("lateRows", "late_rows", "late")(_.late),
    count("stateRows", "state_rows", "state rows")(_.stateRows),
    count("stateBytes", "state_bytes", "state bytes")(_.stateBytes),
    Count("taskMs", "task_seconds", Some("ms in tasks"), isTime = true)(numbers =>
      Some(numbers.taskMs)))
}
