// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.web

import java.time.Instant

import scala.xml.NodeSeq

import org.apache.spark.sql.changelog.compat.{WebPage, WebRequest}
import org.apache.spark.sql.changelog.plans.OperatorNumber
import org.apache.spark.sql.changelog.status.{RunningPlans, RunningQuery}

/** The queries that run, and those that have ended last. */
private[web] class QueriesPage(ended: EndedQueries) extends WebPage("", "Changelog queries") {

  override def content(request: WebRequest): NodeSeq =
    running(request) ++ endedQueries ++
      <p>{Table.link(request.link("views"), "Materialized views and streaming tables")}</p>

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
}
