// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import scala.xml.{Elem, MinimizeMode, NodeSeq, Unparsed, Utility}

import org.apache.spark.sql.changelog.plans.ExplainNode
import org.apache.spark.sql.changelog.status.RunningQuery

/**
 * Makes a page of what EXPLAIN says of a query: its picture, and the numbers of its operators as a
 * table if it runs. All that the page needs is in it.
 */
private[explain] object PlanPage {

  def apply(trees: Seq[ExplainNode]): String =
    page("How the changes of a query are kept", trees, Nil)

  def apply(query: RunningQuery): String = {
    val batch = LastBatch(query)
    page(
      s"Query ${batch.title}",
      query.trees,
      batch.lines.tail.map(line => <p>{line}</p>) ++ operators(query.trees))
  }

  def text(node: Elem): String =
    Utility.serialize(node, minimizeTags = MinimizeMode.Default).toString

  private def page(title: String, trees: Seq[ExplainNode], about: NodeSeq): String = {
    val page =
      <html lang="en">
        <head>
          <meta charset="utf-8"/>
          <title>{title}</title>
          <style>{Unparsed(Style)}</style>
        </head>
        <body>
          <h1>{title}</h1>
          {about}
          {trees.map(tree => <div class="plan">{PlanPicture(tree.folded)}</div>)}
          {Legend}
        </body>
      </html>
    s"<!DOCTYPE html>\n${text(page)}\n"
  }

  private def operators(trees: Seq[ExplainNode]): NodeSeq = {
    val rows = trees.flatMap(_.nodes).flatMap(node => node.numbers.map(node -> _)).reverse
    if (rows.isEmpty) NodeSeq.Empty
    else {
      val heads = Seq(
        "operator",
        "node",
        "rows in",
        "+I",
        "-U",
        "+U",
        "-D",
        "churn",
        "unmatched",
        "late",
        "state rows",
        "state bytes",
        "ms in tasks")
      <table>
        <thead><tr>{heads.map(head => <th>{head}</th>)}</tr></thead>
        <tbody>{
        rows.map { case (node, numbers) =>
          val counts = Seq(
            numbers.rowsIn.map(rows => f"$rows%,d"),
            Some(f"${numbers.inserts}%,d"),
            Some(f"${numbers.updatePreimages}%,d"),
            Some(f"${numbers.updatePostimages}%,d"),
            Some(f"${numbers.deletes}%,d"),
            numbers.churn.map(ratio => f"$ratio%.2f"),
            Some(f"${numbers.unmatched}%,d"),
            Some(f"${numbers.late}%,d"),
            Some(f"${numbers.stateRows}%,d"),
            Some(f"${numbers.stateBytes}%,d"),
            Some(f"${numbers.taskMs}%,d"))
          <tr>
            <td>{node.operators.mkString(", ")}</td>
            <td class="node">{s"${node.node} ${node.detail}"}</td>
            {counts.map(count => <td>{count.getOrElse("")}</td>)}
          </tr>
        }
      }</tbody>
      </table>
    }
  }

  private def Legend: Elem =
    <p class="legend">
      Changes go upwards, from the sources to the reader:
      <b style="color:#15803d">+I</b> a row comes,
      <b style="color:#c2410c">-U</b> the old and <b style="color:#1d4ed8">+U</b> the new row of an update,
      <b style="color:#b91c1c">-D</b> a row goes.
      ▤ is a table of state, with what bounds it below.
    </p>

  private val Style =
    """
body { margin: 24px; background: #fff; color: #0f172a; font: 14px/1.5 system-ui, sans-serif }
h1 { font-size: 20px }
.plan { overflow-x: auto; margin: 16px 0 }
.plan svg { display: block }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: 3px 10px; border-bottom: 1px solid #e2e8f0; text-align: right }
th { color: #475569; font-weight: 600 }
th:nth-child(2), td.node { text-align: left; font-family: ui-monospace, monospace; font-size: 12px; max-width: 48em; overflow-wrap: anywhere }
.legend { color: #475569 }
"""
}
