// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.json4s.JsonDSL._
import org.json4s._
import org.json4s.jackson.JsonMethods.{pretty, render}

/**
 * What EXPLAIN says about one node: the model behind the text, the JSON and the golden files.
 *
 * @param node
 *   the node's name
 * @param detail
 *   its arguments
 * @param mode
 *   the row kinds it sends
 * @param requires
 *   how its consumer wants updates
 * @param upsertKeys
 *   sets of columns that identify a row
 * @param strategy
 *   how it is executed, where there is a choice
 * @param state
 *   the tables it keeps
 * @param reasons
 *   why
 * @param isPart
 *   whether it is a part of what the function of the source above is made of, which only text that
 *   is to be verbose shows
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
    isPart: Boolean) {

  /** One line per node, inputs indented, with the reasons below each node. */
  def toText: String = toText(verbose = false)

  def toText(verbose: Boolean): String = {
    val text = new StringBuilder
    (if (verbose) this else folded).append(text, depth = 0)
    text.toString
  }

  /** The tree as JSON, root first. */
  def toJson: String = pretty(render(json))

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
    children.foreach(_.append(text, depth + 1))
  }

  /** The tree without parts: what they read is in their place. */
  private def folded: ExplainNode = copy(children = children.flatMap { child =>
    val below = child.folded
    if (child.isPart) below.children else Seq(below)
  })

  private def json: JObject =
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
      ("children" -> children.map(_.json))
}
