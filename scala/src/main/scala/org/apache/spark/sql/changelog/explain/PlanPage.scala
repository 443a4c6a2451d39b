// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import scala.xml.{Elem, MinimizeMode, NodeSeq, Unparsed, Utility}

import org.apache.spark.sql.changelog.plans.OperatorNumber.{Count, Ratio}
import org.apache.spark.sql.changelog.plans.{ExplainNode, OperatorNumber}
import org.apache.spark.sql.changelog.status.RunningQuery

/**
 * Makes a page of what EXPLAIN says of a query: its picture, and the numbers of its operators as a
 * table if it runs. All that the page needs is in it.
 */
private[changelog] object PlanPage {

  def apply(trees: Seq[ExplainNode]): String =
    page("How the changes of a query are kept", content(trees))

  def apply(query: RunningQuery): String = page(s"Query ${query.title}", content(query))

  /** What is on the page, for another one. */
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

  /** Of what is on another page, too, and so of nothing but that. */
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
