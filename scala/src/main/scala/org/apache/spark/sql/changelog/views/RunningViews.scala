// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.views.history.{RefreshError, RefreshHistory, RefreshReport}

/** RunningViews: the running queries of views in this process. */
object RunningViews {
  private val queries = new ConcurrentHashMap[String, Running]()

  private case class Running(
      view: MaterializedView,
      query: StreamingQuery,
      report: RefreshReport) {
    def stop(): Unit = {
      query.stop()
      ViewLeases.releaseIfUnused(view)
    }
  }

  def add(view: MaterializedView, query: StreamingQuery): Unit = {
    val report = new RefreshReport
    report.isFor("started", "START")
    queries.put(key(view), Running(view, query, report))
    ViewLeases.handTo(view, query)
  }

  /** Returns the view's query if the query runs. */
  def active(view: MaterializedView): Option[StreamingQuery] = last(view).filter(_.isActive)

  /** Fails if a query of this process keeps the view current. */
  def checkNone(view: MaterializedView): Unit =
    active(view).foreach(_ => throw analysis("CHANGELOG_VIEW_IS_RUNNING", "view" -> view.name))

  /** Returns the query started last, unless a statement has stopped the query. */
  def last(view: MaterializedView): Option[StreamingQuery] =
    Option(queries.get(key(view))).map(_.query)

  /** Stops the view's query, and reports the work done. */
  def stop(view: MaterializedView): Option[RefreshReport] =
    Option(queries.remove(key(view))).map { running =>
      running.stop()
      running.report.ran(running.query)
      running.report
    }

  /** Stops the view's query, and adds the run to the view's history. */
  def end(session: SparkSession, view: MaterializedView): Unit = {
    val failure = last(view).flatMap(_.exception)
    stop(view).foreach { report =>
      val error = failure.map(RefreshError(session, _))
      RefreshHistory.ofView(session, view).add(report.finished(error))
    }
  }

  /** Stops every query, for example when the process ends. */
  def stopAll(): Unit = queries.keySet.asScala.toSeq.foreach { key =>
    Option(queries.remove(key)).foreach(_.stop())
  }

  /** Views of the same name in different catalogs have different folders. */
  private def key(view: MaterializedView): String = view.definition.folder.toString
}
