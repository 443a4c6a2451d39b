// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.json4s.JsonAST._

import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.plans.OperatorNumber.{Count, Ratio}

/**
 * The numbers of a stateful node in one batch of a running query, and the size of the node's
 * state.
 *
 * @param rowsIn
 *   the changes received, if counted
 * @param unmatched
 *   retractions of rows never inserted
 * @param late
 *   rows before the watermark
 * @param taskMs
 *   the total duration of the tasks, including operators in the same stage
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

  /** Returns the number of emitted rows per kind, without zero counts: `+I 3 -U 1 +U 1`. */
  def kinds: String =
    Seq("+I" -> inserts, "-U" -> updatePreimages, "+U" -> updatePostimages, "-D" -> deletes)
      .collect { case (kind, count) if count > 0 => f"$kind $count%,d" }
      .mkString(" ")

  /** Describes the batch for readers. */
  def flow: String = {
    val in = rowsIn.map(rows => f"in $rows%,d, ").mkString
    val out = if (rowsOut == 0) "out 0" else s"out $kinds"
    val ratio = churn.map(ratio => f" (churn $ratio%.2f)").mkString
    val misses = Seq("unmatched" -> unmatched, "late" -> late).collect {
      case (name, count) if count > 0 => f", $count%,d $name"
    }
    s"$in$out$ratio${misses.mkString}, $taskMs ms in tasks"
  }

  /** Describes the operator's state. */
  def kept: String = f"keeps $stateRows%,d rows, ${Utils.bytesToString(stateBytes)}"

  def toJson: JObject = JObject(OperatorNumber.all.toList.map {
    case count: Count => count.name -> count.value(this).fold[JValue](JNothing)(JLong(_))
    case ratio: Ratio => ratio.name -> ratio.value(this).fold[JValue](JNothing)(JDouble(_))
  })
}

object OperatorNumbers {

  /**
   * Combines the numbers of a node with several operators, the lowest first. The first operator
   * receives the node's input, and the last operator emits the node's output.
   */
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

/** A number of an operator, with the only definition of the number's names. */
sealed trait OperatorNumber {

  /** The name in JSON and in Spark's metrics. */
  def name: String

  /** The name in `changelog_status()`. */
  def column: String

  /** The table heading, or None if other columns imply the number. */
  def head: Option[String]
}

object OperatorNumber {

  /**
   * A count.
   *
   * @param isTime
   *   whether the count is in milliseconds; `changelog_status()` shows seconds
   * @param value
   *   the count, or None if unknown
   */
  final case class Count(
      name: String,
      column: String,
      head: Option[String],
      isTime: Boolean = false)(val value: OperatorNumbers => Option[Long])
      extends OperatorNumber

  /** A ratio of two numbers. */
  final case class Ratio(name: String, column: String, head: Option[String])(
      val value: OperatorNumbers => Option[Double])
      extends OperatorNumber

  private def count(name: String, column: String, head: String)(
      value: OperatorNumbers => Long): Count =
    Count(name, column, Some(head))(numbers => Some(value(numbers)))

  /** The emitted rows of each kind. */
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
