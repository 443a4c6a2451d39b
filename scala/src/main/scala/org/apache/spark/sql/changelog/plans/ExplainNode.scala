// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.json4s.JsonDSL._
import org.json4s._
import org.json4s.jackson.JsonMethods.{pretty, render}

import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.plans.OperatorNumber.{Count, Ratio}

/**
 * A node of an EXPLAIN tree: the model of the text, the JSON and the golden files.
 *
 * @param node
 *   the node's name
 * @param detail
 *   the node's arguments
 * @param mode
 *   the row kinds emitted
 * @param requires
 *   the form of updates requested by the consumer
 * @param upsertKeys
 *   sets of columns that identify a row
 * @param strategy
 *   the chosen execution strategy, if there is a choice
 * @param state
 *   the stored tables
 * @param reasons
 *   the reasons for mode and strategy
 * @param isPart
 *   whether the node belongs to the function of the source above; only verbose text shows such nodes
 * @param operators
 *   the numbers of the node's operators, if the node is stateful and planned to run
 * @param warnings
 *   risks of the node once data has grown
 * @param numbers
 *   the numbers of the last batch, for a running query
 * @param emitted
 *   in a dry run, the changes emitted in each batch, as text
 */
final case class ExplainNode(
    node: String,
    detail: String,
    mode: String,
    symbols: Seq[String],
    requires: String,
    upsertKeys: Seq[Seq[String]],
    strategy: Option[String],
    state: Seq[StateTable],
    reasons: Seq[String],
    children: Seq[ExplainNode],
    isPart: Boolean,
    operators: Seq[Long] = Nil,
    warnings: Seq[String] = Nil,
    numbers: Option[OperatorNumbers] = None,
    emitted: Option[Seq[Seq[String]]] = None) {

  /** Formats the tree with one line per node, inputs indented, reasons below each node. */
  def toText: String = toText(verbose = false)

  def toText(verbose: Boolean): String = {
    val text = new StringBuilder
    val shown = if (verbose) this else folded
    shown.append(text, depth = 0)
    val warnings = shown.allWarnings
    if (warnings.nonEmpty) text.append("\nRisks:\n")
    warnings.foreach(warning => text.append(s"! $warning\n"))
    text.toString
  }

  /** Returns the tree as JSON, root first. */
  def toJson: String = pretty(render(json))

  /** Returns the nodes of the tree, the root first. */
  def nodes: Seq[ExplainNode] = this +: children.flatMap(_.nodes)

  /** Returns the distinct risks of all nodes. */
  def allWarnings: Seq[String] = nodes.flatMap(_.warnings).distinct

  /** Returns the tree with the numbers of each operator, by operator number. */
  def running(byId: Map[Long, OperatorNumbers]): ExplainNode = copy(
    numbers = OperatorNumbers.together(operators.sorted.flatMap(byId.get)),
    children = children.map(_.running(byId)))

  /**
   * Returns the tree with the changes emitted in a dry run, by node position from the root down.
   */
  def emitting(byPlace: Map[Int, Seq[Seq[String]]]): ExplainNode = {
    def at(node: ExplainNode, place: Int): (ExplainNode, Int) = {
      val (children, next) = node.children.foldLeft((Vector.empty[ExplainNode], place + 1)) {
        case ((done, place), child) =>
          val (emitting, next) = at(child, place)
          (done :+ emitting, next)
      }
      (node.copy(emitted = byPlace.get(place), children = children), next)
    }
    at(this, place = 0)._1
  }

  /** Returns one line for each batch of a dry run with emitted changes. */
  def emittedLines: Seq[String] = emitted.toSeq.flatMap { batches =>
    val lines = batches.zipWithIndex.collect {
      case (changes, batch) if changes.nonEmpty => s"${batch + 1}: ${changes.mkString(", ")}"
    }
    if (lines.isEmpty) Seq("no changes") else lines
  }

  private def append(text: StringBuilder, depth: Int): Unit = {
    val (lead, below) =
      if (depth == 0) ("", "   ") else ("   " * (depth - 1) + "+- ", "   " * (depth + 1))
    val keys =
      if (upsertKeys.isEmpty) ""
      else upsertKeys.map(_.mkString("(", ", ", ")")).mkString("  key=", " or ", "")
    val stateText = if (state.isEmpty) "" else state.mkString("  state: ", "; ", "")
    val strategyText = strategy.map(name => s"  strategy=$name").getOrElse("")
    text.append(s"$lead${Seq(node, detail).filter(_.nonEmpty).mkString(" ")}  $mode")
    text.append(s"$keys$strategyText$stateText\n")
    reasons.foreach(reason => text.append(s"${below}· $reason\n"))
    numbers.foreach { now =>
      text.append(s"$below# ${now.flow}, ${now.kept}\n")
    }
    emittedLines.foreach(line => text.append(s"$below> $line\n"))
    children.foreach(_.append(text, depth + 1))
  }

  /** Returns the tree without parts. The inputs of a part take its place. */
  def folded: ExplainNode = copy(children = children.flatMap { child =>
    val below = child.folded
    if (child.isPart) below.children else Seq(below)
  })

  def json: JObject =
    ("node" -> node) ~
      ("detail" -> detail) ~
      ("mode" -> symbols) ~
      ("requires" -> requires) ~
      ("upsertKeys" -> upsertKeys) ~
      ("strategy" -> strategy.map(JString(_)).getOrElse(JNull)) ~
      ("state" -> state.map { table =>
        ("table" -> table.table) ~ ("key" -> table.key) ~ ("value" -> table.value) ~
          ("boundedBy" -> table.boundedBy)
      }) ~
      ("reasons" -> reasons) ~
      ("operators" -> operators) ~
      ("warnings" -> warnings) ~
      ("numbers" -> numbers.map(_.toJson)) ~
      ("emitted" -> emitted) ~
      ("children" -> children.map(_.json))
}

/**
 * The numbers of a stateful node in one batch of a running query, and the size of the node's state.
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
