// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.json4s.JsonAST._

import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.plans.OperatorNumber.{Count, Ratio}

/**
 * What a node with state did in one batch of a running query, and what it keeps.
 *
 * @param rowsIn
 *   the changes it was given, if they were counted
 * @param unmatched
 *   retractions of rows that were never given
 * @param late
 *   rows that came too late for the watermark
 * @param taskMs
 *   how long its tasks took, with what runs in the same tasks, all of them together
 */
final case class OperatorNumbers(
    rowsIn: Option[Long],
    inserts: Long,
    updatePreimages: Long,
    updatePostimages: Long,
    deletes: Long,
    unmatched: Long,
    late: Long,
    stateRows: Long,
    stateBytes: Long,
    taskMs: Long) {

  def rowsOut: Long = inserts + updatePreimages + updatePostimages + deletes

  /** Rows out per row in. */
  def churn: Option[Double] = rowsIn.filter(_ > 0).map(rowsOut.toDouble / _)

  /** How many rows of each kind have gone out, of kinds that have: `+I 3 -U 1 +U 1`. */
  def kinds: String =
    Seq("+I" -> inserts, "-U" -> updatePreimages, "+U" -> updatePostimages, "-D" -> deletes)
      .collect { case (kind, count) if count > 0 => f"$kind $count%,d" }
      .mkString(" ")

  /** What it did, for people. */
  def flow: String = {
    val in = rowsIn.map(rows => f"in $rows%,d, ").mkString
    val out = if (rowsOut == 0) "out 0" else s"out $kinds"
    val ratio = churn.map(ratio => f" (churn $ratio%.2f)").mkString
    val misses = Seq("unmatched" -> unmatched, "late" -> late).collect {
      case (name, count) if count > 0 => f", $count%,d $name"
    }
    s"$in$out$ratio${misses.mkString}, $taskMs ms in tasks"
  }

  /** A description of the operator's state. */
  def kept: String = f"keeps $stateRows%,d rows, ${Utils.bytesToString(stateBytes)}"

  def toJson: JObject = JObject(OperatorNumber.all.toList.map {
    case count: Count => count.name -> count.value(this).fold[JValue](JNothing)(JLong(_))
    case ratio: Ratio => ratio.name -> ratio.value(this).fold[JValue](JNothing)(JDouble(_))
  })
}

object OperatorNumbers {

  /** Those of a node that is several operators, the lowest first: rows go in there, and out at the last. */
  def together(operators: Seq[OperatorNumbers]): Option[OperatorNumbers] =
    operators.lastOption.map { last =>
      last.copy(
        rowsIn = operators.head.rowsIn,
        unmatched = operators.map(_.unmatched).sum,
        late = operators.map(_.late).sum,
        stateRows = operators.map(_.stateRows).sum,
        stateBytes = operators.map(_.stateBytes).sum,
        taskMs = operators.map(_.taskMs).sum)
    }
}

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
