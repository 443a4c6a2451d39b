// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.web

import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent

import org.apache.spark.sql.changelog.compat.WebTab
import org.apache.spark.sql.changelog.views.history.RefreshError

/**
 * The tab `Changelog` of Spark's web UI: what queries that keep changes, and views, do. It is there from
 * the first batch of such a query in the application, if that has a UI.
 */
object ChangelogTab extends Logging {
  private val tabs = new ConcurrentHashMap[SparkContext, Tab]

  /** What is known in an application, and goes with it. */
  private class Tab(context: SparkContext) extends SparkListener {
    val ended = new EndedQueries

    // whichever session knows views: all see one catalog
    @volatile var session: SparkSession = _

    WebTab.attach(
      context,
      "changelog",
      "Changelog",
      Seq(
        new QueriesPage(ended),
        new QueryPage(ended),
        new ViewsPage(() => session),
        new ViewPage(() => session)))
    context.addSparkListener(this)

    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case terminated: QueryTerminatedEvent => ended.end(terminated.runId)
      case _ =>
    }

    override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = {
      tabs.remove(context)
      ()
    }
  }

  /** Called when a run of a query begins. What happens to the tab never matters to the query. */
  def show(query: StreamingQuery): Unit =
    try {
      val session = castToImpl(query.sparkSession)
      if (session.sparkContext.uiWebUrl.isDefined) {
        val tab = tabs.computeIfAbsent(session.sparkContext, new Tab(_))
        tab.session = session
        tab.ended.watch(query, error => RefreshError(session, error))
      }
    } catch {
      case NonFatal(error) => logWarning("The tab of changelog queries can't be shown", error)
    }
}
