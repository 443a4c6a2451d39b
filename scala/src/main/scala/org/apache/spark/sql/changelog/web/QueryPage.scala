// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.web

import scala.xml.NodeSeq

import org.apache.spark.sql.changelog.compat.{WebPage, WebRequest}
import org.apache.spark.sql.changelog.explain.PlanPage
import org.apache.spark.sql.changelog.status.RunningPlans

/** One query: its last batch, operator by operator, and its picture. Parameter `run`: the id of its run. */
private[web] class QueryPage(ended: EndedQueries) extends WebPage("query", "Changelog query") {

  override def content(request: WebRequest): NodeSeq = {
    val run = request.parameter("run").getOrElse("")
    RunningPlans.find(run) match {
      case Some(query) => <h4>{s"Query ${query.title}"}</h4> ++ PlanPage.content(query)
      case None =>
        ended.all.find(_.runId == run) match {
          case Some(query) =>
            val why = query.error.fold("It has ended.")(error => s"It has failed: $error")
            <h4>{s"Query ${query.name}"}</h4> ++ <p>{why}</p>
          case None => <p>{s"No query has the run $run here."}</p>
        }
    }
  }
}
