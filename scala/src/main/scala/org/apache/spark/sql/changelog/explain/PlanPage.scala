// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.xml.{Elem, MinimizeMode, NodeSeq, Unparsed, Utility}

import org.json4s.JsonAST._
import org.json4s.JsonDSL._

import org.apache.spark.sql.changelog.execution.RunningQuery
import org.apache.spark.sql.changelog.plans.OperatorNumber.{Count, Ratio}
import org.apache.spark.sql.changelog.plans.{ExplainNode, OperatorNumber}

/**
 * Makes an HTML page from EXPLAIN: the picture of the query and, for a running query, a table of
 * operators. The page is self-contained.
 */
private[changelog] object PlanPage {

  def apply(trees: Seq[ExplainNode]): String =
    page("The plan of a changelog query", content(trees))

  def apply(query: RunningQuery): String = page(s"Query ${query.title}", content(query))

  /** Returns the content of the page, for embedding. */
  def content(trees: Seq[ExplainNode]): NodeSeq = framed(pictures(trees))

  def content(query: RunningQuery): NodeSeq = framed(
    LastBatch(query).lines.tail.map(line => <p>{line}</p>) ++ operators(query.trees) ++
      pictures(query.trees))

  def text(node: Elem): String =
    Utility.serialize(node, minimizeTags = MinimizeMode.Default).toString

  private def page(title: String, content: NodeSeq): String = {
    val page =
      <html lang="en">
        <head>
          <meta charset="utf-8"/>
          <meta name="viewport" content="width=device-width, initial-scale=1"/>
          <meta name="color-scheme" content="light dark"/>
          <title>{title}</title>
          <style>{Unparsed(PageStyle)}</style>
        </head>
        <body class={PlanColour.Scope}>
          <h1>{title}</h1>
          {content}
        </body>
      </html>
    s"<!DOCTYPE html>\n${text(page)}\n"
  }

  private def framed(content: NodeSeq): NodeSeq =
    <div class={PlanColour.Scope}><style>{
      Unparsed(s"${PlanColour.style}\n$Style")
    }</style>{content}</div>

  private def pictures(trees: Seq[ExplainNode]): NodeSeq =
    trees.map(tree => <div class="plan wide">{PlanPicture(tree.folded)}</div>) ++ Legend

  private def operators(trees: Seq[ExplainNode]): NodeSeq = {
    val rows = trees.flatMap(_.nodes).flatMap(node => node.numbers.map(node -> _)).reverse
    if (rows.isEmpty) NodeSeq.Empty
    else {
      val shown = OperatorNumber.all.filter(_.head.nonEmpty)
      val heads = Seq("operator", "node") ++ shown.flatMap(_.head)
      <div class="wide"><table>
        <thead><tr>{heads.map(head => <th>{head}</th>)}</tr></thead>
        <tbody>{
        rows.map { case (node, numbers) =>
          val cells = shown.map {
            case count: Count => count.value(numbers).map(value => f"$value%,d")
            case ratio: Ratio => ratio.value(numbers).map(value => f"$value%.2f")
          }
          <tr>
            <td>{node.operators.mkString(", ")}</td>
            <td class="node">{s"${node.node} ${node.detail}"}</td>
            {cells.map(cell => <td>{cell.getOrElse("")}</td>)}
          </tr>
        }
      }</tbody>
      </table></div>
    }
  }

  private def Legend: Elem = {
    def kind(name: String) = {
      val (text, colour) = PlanBox.Kinds(name)
      <b class={colour.text}>{text}</b>
    }
    <p class={s"legend ${PlanColour.Quiet.text}"}>
      Changes go upwards, from the sources to the reader:
      {kind("I")} a row comes,
      {kind("UB")} the old and {kind("UA")} the new row of an update,
      {kind("D")} a row goes.
      ▤ is a table of state, with what bounds it below.
    </p>
  }

  private val PageStyle =
    """
body { margin: 24px; background: var(--changelog-paper); color: var(--changelog-ink); font: 14px/1.5 system-ui, sans-serif }
h1 { font-size: 20px; overflow-wrap: anywhere }
@media (max-width: 600px) { body { margin: 12px } }
"""

  /** Scoped CSS, for embedding in other pages. */
  private val Style =
    """
.changelog .wide { overflow-x: auto; margin: 16px 0 }
.changelog .plan svg { display: block }
.changelog .plan svg > rect { fill: none }
.changelog p { overflow-wrap: anywhere }
.changelog table { border-collapse: collapse; font-variant-numeric: tabular-nums }
.changelog th, .changelog td { padding: 3px 10px; border-bottom: 1px solid var(--changelog-rule); text-align: right }
.changelog th { color: var(--changelog-quiet); font-weight: 600; white-space: nowrap }
.changelog th:nth-child(2), .changelog td.node { text-align: left; font-family: ui-monospace, monospace; font-size: 12px; max-width: 48em; min-width: 18em; overflow-wrap: anywhere }
"""
}

/**
 * A color of a plan's picture, with a value for light pages and a value for dark pages.
 *
 * Renderers without style sheets use the light value.
 */
private[explain] case class PlanColour private (name: String, light: String, dark: String) {

  /** The CSS class for filled shapes. */
  def fill: String = s"fill-$name"

  /** The CSS class for strokes. */
  def stroke: String = s"stroke-$name"

  /** The CSS class for text outside a picture. */
  def text: String = s"text-$name"
}

private[explain] object PlanColour {
  private val all = mutable.ArrayBuffer.empty[PlanColour]

  private def colour(name: String, light: String, dark: String): PlanColour = {
    all += PlanColour(name, light, dark)
    all.last
  }

  val Paper: PlanColour = colour("paper", "#ffffff", "#0f172a")
  val Box: PlanColour = colour("box", "#f8fafc", "#1e293b")
  val Ink: PlanColour = colour("ink", "#0f172a", "#e2e8f0")
  val Quiet: PlanColour = colour("quiet", "#475569", "#a8b5c7")
  val Rule: PlanColour = colour("rule", "#e2e8f0", "#334155")
  val Arrow: PlanColour = colour("arrow", "#64748b", "#94a3b8")
  val Good: PlanColour = colour("good", "#15803d", "#4ade80")
  val Warning: PlanColour = colour("warning", "#b45309", "#fbbf24")
  val Live: PlanColour = colour("live", "#6d28d9", "#c4b5fd")

  val Insert: PlanColour = colour("insert", "#15803d", "#4ade80")
  val Before: PlanColour = colour("before", "#c2410c", "#fb923c")
  val After: PlanColour = colour("after", "#1d4ed8", "#93c5fd")
  val Delete: PlanColour = colour("delete", "#b91c1c", "#fca5a5")

  /** The colors of titles and title text. */
  val Title: PlanColour = colour("title", "#ffffff", "#ffffff")
  val Reader: PlanColour = colour("reader", "#0f766e", "#0f766e")
  val Stateful: PlanColour = colour("stateful", "#5b21b6", "#7c3aed")
  val Source: PlanColour = colour("source", "#1e40af", "#2563eb")
  val Plain: PlanColour = colour("plain", "#475569", "#526077")

  /** The CSS class that sets the colors. */
  val Scope = "changelog"

  /**
   * The style sheet with all colors for [[Scope]]. Dark values apply on pages marked as dark, as
   * in Spark's UI and notebooks. The dark values also apply on unmarked pages if the reader
   * prefers dark pages.
   */
  val style: String = {
    def values(colour: PlanColour => String) =
      all.map(each => s"--changelog-${each.name}: ${colour(each)}").mkString("{ ", "; ", " }")
    def uses(place: String, property: String) = all.map { colour =>
      s".$Scope .$place-${colour.name} { $property: var(--changelog-${colour.name}) }"
    }
    val saysDark =
      Seq("[data-bs-theme=dark]", "[data-jp-theme-light=false]").map(page => s"$page .$Scope")
    val saysNothing =
      ":root:not([data-bs-theme]):not(:has([data-jp-theme-light=true]))"
    (Seq(
      s".$Scope ${values(_.light)}",
      s"@media (prefers-color-scheme: dark) { $saysNothing .$Scope, svg.$Scope:root ${values(_.dark)} }",
      s"${saysDark.mkString(", ")} ${values(_.dark)}") ++
      uses("fill", "fill") ++ uses("stroke", "stroke") ++ uses("text", "color")).mkString("\n")
  }
}

/** Describes a running query and its last batch. */
private[explain] case class LastBatch(query: RunningQuery) {
  private val durations = query.progress
    .map(_.durationMs.asScala.toSeq.map { case (phase, ms) => phase -> ms.longValue })
    .getOrElse(Nil)
    .sortBy(-_._2)

  /**
   * Returns the durations of the batch's phases, longest first. The first duration is the total.
   */
  private def phases: String =
    durations.filter(_._2 > 0).map { case (phase, ms) => s"$phase $ms ms" }.mkString(", ")

  def lines: Seq[String] = Seq(
    s"Query ${query.title}, run ${query.runId}${if (query.isActive) "" else ", has ended"}",
    query.progress.fold("No batch is done yet.") { batch =>
      f"Batch ${batch.batchId} of ${batch.timestamp}: ${batch.numInputRows}%,d rows read; $phases"
    },
    s"${query.compiled} classes compiled by the driver since the run began")

  def toJson: JObject =
    ("name" -> query.name) ~ ("id" -> query.id) ~ ("runId" -> query.runId) ~
      ("active" -> query.isActive) ~
      ("batchId" -> query.progress.map(_.batchId)) ~
      ("timestamp" -> query.progress.map(_.timestamp)) ~
      ("rowsRead" -> query.progress.map(_.numInputRows)) ~
      ("durationMs" -> JObject(durations.toList.map { case (phase, ms) => phase -> JInt(ms) })) ~
      ("compiledClasses" -> query.compiled)
}
