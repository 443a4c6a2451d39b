// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.web

import java.time.Instant

import scala.util.control.NonFatal
import scala.xml.NodeSeq

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.compat.{WebPage, WebRequest}
import org.apache.spark.sql.changelog.explain.PlanPage
import org.apache.spark.sql.changelog.status.RunningPlans
import org.apache.spark.sql.changelog.views.history.{RefreshError, RefreshHistory, RefreshRecord}
import org.apache.spark.sql.changelog.views.{KeptView, ViewCatalog, ViewQuery, ViewStatus}

/** One view: how it does, its last refreshes, and the picture of its plan. Parameter `name`. */
private[web] class ViewPage(session: () => SparkSession)
    extends WebPage("view", "Changelog view") {
  import ViewPage._

  override def content(request: WebRequest): NodeSeq = {
    val name = request.parameter("name").getOrElse("")
    try
      session().withActive {
        val parts = session().sessionState.sqlParser.parseMultipartIdentifier(name)
        val view = new ViewCatalog(session()).get(parts)
        <h4>{s"${view.definition.kind} ${view.name.unquotedString}"}</h4> ++
          facts(view) ++ refreshes(view) ++ plan(view)
      }
    catch { case NonFatal(error) => <p>{RefreshError(session(), error)}</p> }
  }

  private def facts(view: KeptView): NodeSeq =
    Table(
      Seq("name", "value"),
      new ViewStatus(session(), view).facts.map { case (name, value) =>
        Seq(Table.text(name), Table.text(value))
      })

  private def refreshes(view: KeptView): NodeSeq =
    Table.under(
      "Refreshes",
      Seq(
        "started",
        "took",
        "mode",
        "reason",
        "state",
        "rows read",
        "rows written",
        "rows taken back",
        "error"),
      RefreshHistory.ofView(session(), view).newest(Shown).map(row),
      "There were none.")

  private def row(record: RefreshRecord): Seq[NodeSeq] = Seq(
    Table.text(Instant.ofEpochMilli(record.started).toString),
    Table.seconds(Some(record.millis / 1000.0)),
    Table.text(record.mode),
    Table.text(record.reason),
    Table.text(record.state),
    Table.count(record.rowsRead),
    Table.count(record.rowsWritten),
    Table.count(record.rowsTakenBack),
    Table.text(record.error))

  /** With the numbers of the last batch if a query keeps it now. */
  private def plan(view: KeptView): NodeSeq =
    <h4>Plan</h4> ++ (RunningPlans.find(view.queryName).filter(_.isActive) match {
      case Some(query) => PlanPage.content(query)
      case None =>
        val query = new ViewQuery(session(), view.definition)
        if (query.isStreaming) PlanPage.content(Seq(query.output.explained))
        else <p>All rows are computed anew by each refresh.</p>
    })
}

private object ViewPage {
  private val Shown = 50
}
