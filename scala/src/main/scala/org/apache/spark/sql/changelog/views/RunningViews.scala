// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views.history.{RefreshError, RefreshHistory, RefreshReport}

/** The queries that keep views current in this process, until they are stopped. */
object RunningViews {
  private val queries = new ConcurrentHashMap[String, Running]()

  private case class Running(view: KeptView, query: StreamingQuery, report: RefreshReport) {
    def stop(): Unit = {
      query.stop()
      ViewLeases.letGo(view)
    }
  }

  def add(view: KeptView, query: StreamingQuery): Unit = {
    val report = new RefreshReport
    report.isFor("started", "START")
    queries.put(key(view), Running(view, query, report))
    ViewLeases.keep(view, query)
  }

  /** The query that keeps the view current now. */
  def active(view: KeptView): Option[StreamingQuery] = last(view).filter(_.isActive)

  /** Refuses a view that a query of this process keeps. */
  def checkNone(view: KeptView): Unit =
    active(view).foreach(_ => throw ViewErrors.isRunning(view.name))

  /** The query that was started last, if it has not been stopped by a statement. */
  def last(view: KeptView): Option[StreamingQuery] =
    Option(queries.get(key(view))).map(_.query)

  /** Stops it, and tells what it has done. */
  def stop(view: KeptView): Option[RefreshReport] =
    Option(queries.remove(key(view))).map { running =>
      running.stop()
      running.report.ran(running.query)
      running.report
    }

  /** The same, and lets the view's history know of it. */
  def end(session: SparkSession, view: KeptView): Unit = {
    val failure = last(view).flatMap(_.exception)
    stop(view).foreach { report =>
      val error = failure.map(RefreshError(session, _))
      RefreshHistory.ofView(session, view).add(report.finished(error))
    }
  }

  /** Stops all of them, as when the process ends. */
  def stopAll(): Unit = queries.keySet.asScala.toSeq.foreach { key =>
    Option(queries.remove(key)).foreach(_.stop())
  }

  /** Views of the same name in different catalogs have different folders. */
  private def key(view: KeptView): String = view.definition.folder.toString
}
