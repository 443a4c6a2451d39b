// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.web

import scala.util.control.NonFatal
import scala.xml.NodeSeq

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.compat.{WebPage, WebRequest}
import org.apache.spark.sql.changelog.views.history.RefreshError
import org.apache.spark.sql.changelog.views.{KeptView, ViewCatalog, ViewStatus}

/** All views. It has a page of its own, for a catalog with many tables takes a while to look through. */
private[web] class ViewsPage(session: () => SparkSession)
    extends WebPage("views", "Materialized views and streaming tables") {

  override def content(request: WebRequest): NodeSeq = {
    val heads =
      Seq(
        "view",
        "kind",
        "status",
        "as of",
        "lag, at most",
        "last refresh",
        "took",
        "rows read",
        "rows written",
        "rows taken back",
        "failure")
    try
      session().withActive {
        val all = new ViewCatalog(session()).listAll().sortBy(_.name.unquotedString)
        Table.under("Views", heads, all.map(row(_, request)), "There are none.")
      }
    catch {
      case NonFatal(error) =>
        <h4>Views</h4> ++ <p>{s"They can't be listed: ${RefreshError(session(), error)}"}</p>
    }
  }

  private def row(view: KeptView, request: WebRequest): Seq[NodeSeq] = {
    val name = view.name.unquotedString
    val link = Table.link(request.link("view", "name" -> view.name.quotedString), name)
    try {
      val status = new ViewStatus(session(), view)
      val last = status.lastRefresh
      Seq[NodeSeq](
        link,
        Table.text(view.definition.kind.toString),
        Table.text(status.state),
        Table.text(status.asOf),
        Table.seconds(status.behindSeconds),
        Table.text(last.map(_.mode)),
        Table.seconds(last.map(_.millis / 1000.0)),
        Table.count(last.flatMap(_.rowsRead)),
        Table.count(last.flatMap(_.rowsWritten)),
        Table.count(last.flatMap(_.rowsTakenBack)),
        Table.text(status.failure))
    } catch {
      case NonFatal(error) =>
        val failure = Table.text(RefreshError(session(), error))
        (link +: Seq.fill[NodeSeq](9)(NodeSeq.Empty)) :+ failure
    }
  }
}
