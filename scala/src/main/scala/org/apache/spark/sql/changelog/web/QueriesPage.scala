// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.web

import java.time.Instant

import scala.util.Try
import scala.util.control.NonFatal
import scala.xml.NodeSeq

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.compat.{WebPage, WebRequest}
import org.apache.spark.sql.changelog.execution.{RunningPlans, RunningQuery}
import org.apache.spark.sql.changelog.explain.PlanPage
import org.apache.spark.sql.changelog.plans.OperatorNumber
import org.apache.spark.sql.changelog.views.history.{RefreshError, RefreshHistory, RefreshRecord}
import org.apache.spark.sql.changelog.views.{MaterializedView, ViewCatalog, ViewQuery, ViewStatus}

/** The page with running queries and the last ended queries. */
private[web] class QueriesPage(ended: EndedQueries) extends WebPage("", "Changelog queries") {

  override def content(request: WebRequest): NodeSeq =
    running(request) ++ endedQueries ++
      <p>{Table.link(request.link("views"), "Materialized views and streaming tables")}</p>

  /** The row kinds emitted by the topmost operators. */
  private val kinds = OperatorNumber.kinds

  private def running(request: WebRequest): NodeSeq = {
    val queries = RunningPlans.all.filter(_.isActive).sortBy(query => (query.title, query.runId))
    Table.under(
      "Running queries",
      Seq("query", "behind", "last batch", "begun", "took", "rows read") ++
        kinds.flatMap(_.head) ++ Seq("state rows", "state"),
      queries.map(row(_, request)),
      "No query is running.")
  }

  private def row(query: RunningQuery, request: WebRequest): Seq[NodeSeq] = {
    Seq[NodeSeq](
      Table.link(request.link("query", "run" -> query.runId), query.title),
      query.asOf.fold(NodeSeq.Empty)(Table.since),
      Table.text(query.progress.map(_.batchId.toString)),
      Table.text(query.progress.map(_.timestamp)),
      Table.seconds(query.progress.map(_.batchDuration / 1000.0)),
      Table.count(query.progress.map(_.numInputRows))) ++
      kinds.map(kind => Table.count(query.topmost.flatMap(kind.value(_)).reduceOption(_ + _))) ++
      Seq(
        Table.count(Some(query.operators.map(_.numbers.stateRows).sum)),
        Table.bytes(Some(query.operators.map(_.numbers.stateBytes).sum)))
  }

  private def endedQueries: NodeSeq = {
    val rows = ended.all.map { query =>
      Seq[NodeSeq](
        Table.text(query.name),
        Table.text(query.runId),
        Table.text(Instant.ofEpochMilli(query.at).toString),
        Table.text(query.error))
    }
    if (rows.isEmpty) NodeSeq.Empty
    else Table.under("Ended queries", Seq("query", "run", "at", "error"), rows, none = "")
  }
}

/** The page of a query: the operators' last batch, and the diagram of the plan. Parameter `run`: the id of the run. */
private[web] class QueryPage(ended: EndedQueries) extends WebPage("query", "Changelog query") {

  override def content(request: WebRequest): NodeSeq = {
    val run = request.parameter("run").getOrElse("")
    RunningPlans.find(run) match {
      case Some(query) => <h4>{s"Query ${query.title}"}</h4> ++ PlanPage.content(query)
      case None =>
        ended.all.find(_.runId == run) match {
          case Some(query) =>
            val why =
              query.error.fold("The query has ended.")(error => s"The query has failed: $error")
            <h4>{s"Query ${query.name}"}</h4> ++ <p>{why}</p>
          case None => <p>{s"No query has the run $run here."}</p>
        }
    }
  }
}

/** The page with all views. The page is separate, because listing a catalog with many tables takes time. */
private[web] class ViewsPage(session: () => SparkSession)
    extends WebPage("views", "Materialized views and streaming tables") {

  override def content(request: WebRequest): NodeSeq = {
    try
      session().withActive {
        val all = new ViewCatalog(session()).listAllWithErrors().sortBy(_._1.unquotedString)
        val heads = Seq("view", "kind") ++ columns.map(_._1)
        val rows = all.map { case (name, view) => row(name, view, request) }
        Table.under("Views", heads, rows, "There are no views.")
      }
    catch {
      case NonFatal(error) =>
        <h4>Views</h4> ++ <p>{s"Views cannot be listed: ${RefreshError(session(), error)}"}</p>
    }
  }

  private val columns: Seq[(String, ViewStatus => NodeSeq)] = Seq(
    ("status", status => Table.text(status.state)),
    ("as of", status => Table.text(status.asOf)),
    ("behind", status => Table.seconds(status.behindSeconds)),
    ("last refresh", status => Table.text(status.lastRefresh.map(_.mode))),
    ("took", status => Table.seconds(status.lastRefresh.map(_.millis / 1000.0))),
    ("rows read", status => Table.count(status.lastRefresh.flatMap(_.rowsRead))),
    ("rows written", status => Table.count(status.lastRefresh.flatMap(_.rowsWritten))),
    ("rows retracted", status => Table.count(status.lastRefresh.flatMap(_.rowsRetracted))),
    ("failure", status => Table.text(status.failure)))

  private def row(
      name: TableIdentifier,
      view: Try[MaterializedView],
      request: WebRequest): Seq[NodeSeq] = {
    val link = request.link("view", "name" -> name.quotedString)
    val cells =
      try {
        val status = new ViewStatus(session(), view.get)
        Table.text(view.get.definition.kind.toString) +: columns.map(_._2(status))
      } catch {
        case NonFatal(error) =>
          columns.map(_ => NodeSeq.Empty) :+ Table.text(RefreshError(session(), error))
      }
    Table.link(link, name.unquotedString) +: cells
  }
}

/**
 * The page of a view: its status, its last refreshes, and the diagram of its plan. Parameter `name`: the view's
 * name.
 */
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

  private def facts(view: MaterializedView): NodeSeq =
    Table(
      Seq("name", "value"),
      new ViewStatus(session(), view).facts.map { case (name, value) =>
        Seq(Table.text(name), Table.text(value))
      })

  private def refreshes(view: MaterializedView): NodeSeq =
    Table.under(
      "Refreshes",
      columns.map(_._1),
      RefreshHistory.ofView(session(), view).newest(Shown).map { record =>
        columns.map(_._2(record))
      },
      "There are no refreshes yet.")

  private val columns: Seq[(String, RefreshRecord => NodeSeq)] = Seq(
    ("started", record => Table.text(Instant.ofEpochMilli(record.started).toString)),
    ("took", record => Table.seconds(Some(record.millis / 1000.0))),
    ("mode", record => Table.text(record.mode)),
    ("reason", record => Table.text(record.reason)),
    ("state", record => Table.text(record.state)),
    ("rows read", record => Table.count(record.rowsRead)),
    ("rows written", record => Table.count(record.rowsWritten)),
    ("rows retracted", record => Table.count(record.rowsRetracted)),
    ("error", record => Table.text(record.error)))

  /** Returns the plan, with the numbers of the last batch if a query is refreshing the view now. */
  private def plan(view: MaterializedView): NodeSeq =
    <h4>Plan</h4> ++ (RunningPlans.find(view.queryName).filter(_.isActive) match {
      case Some(query) => PlanPage.content(query)
      case None =>
        val query = new ViewQuery(session(), view.definition)
        if (query.isStreaming) PlanPage.content(Seq(query.output.explained))
        else <p>Each refresh recomputes all rows.</p>
    })
}

private object ViewPage {
  private val Shown = 50
}
