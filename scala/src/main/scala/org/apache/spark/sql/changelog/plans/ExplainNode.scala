// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.json4s.JsonDSL._
import org.json4s._
import org.json4s.jackson.JsonMethods.{pretty, render}

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
 *   whether the node belongs to the function of the source above; only verbose text shows such
 *   nodes
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
