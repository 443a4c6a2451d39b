// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.web

import java.time.Instant

import scala.util.control.NonFatal
import scala.xml.NodeSeq

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.compat.{WebPage, WebRequest}
import org.apache.spark.sql.changelog.plans.OperatorNumber
import org.apache.spark.sql.changelog.status.{RunningPlans, RunningQuery}
import org.apache.spark.sql.changelog.views.history.RefreshError
import org.apache.spark.sql.changelog.views.{KeptView, ViewCatalog, ViewStatus}

/** The queries that run, those that have ended last, and all views. */
private[web] class QueriesPage(session: () => SparkSession, ended: EndedQueries)
    extends WebPage("", "Changelog queries and views") {

  override def content(request: WebRequest): NodeSeq =
    running(request) ++ endedQueries ++ views(request)

  /** What the operators have sent that no other is above. */
  private val kinds = OperatorNumber.kinds

  private def running(request: WebRequest): NodeSeq = {
    val queries = RunningPlans.all.filter(_.isActive).sortBy(query => (query.title, query.runId))
    Table.under(
      "Running queries",
      Seq("query", "lag, at most", "last batch", "begun", "took", "rows read") ++
        kinds.flatMap(_.head) ++ Seq("state rows", "state"),
      queries.map(row(_, request)),
      "None runs.")
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

  private def views(request: WebRequest): NodeSeq = {
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
