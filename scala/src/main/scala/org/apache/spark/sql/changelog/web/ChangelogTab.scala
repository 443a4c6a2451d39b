// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.web

import java.time.{Duration, Instant}
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.util.control.NonFatal
import scala.xml.{Elem, NodeSeq, Text}

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.compat.WebTab
import org.apache.spark.sql.changelog.views.history.RefreshError

/**
 * The tab `Changelog` of Spark's web UI, for changelog queries and views. The tab appears with the first batch
 * of such a query in the application.
 */
object ChangelogTab extends Logging {
  private val tabs = new ConcurrentHashMap[SparkContext, Tab]

  /** The tab's data for an application, removed when the application ends. */
  private class Tab(context: SparkContext) extends SparkListener {
    val ended = new EndedQueries

    // any session with views, because all sessions share a catalog
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

  /** Shows a query. Called when a run begins. Errors of the tab never affect the query. */
  def show(query: StreamingQuery): Unit =
    try {
      val session = castToImpl(query.sparkSession)
      if (session.sparkContext.uiWebUrl.isDefined) {
        val tab = tabs.computeIfAbsent(session.sparkContext, new Tab(_))
        tab.session = session
        tab.ended.watch(query, error => RefreshError(session, error))
      }
    } catch {
      case NonFatal(error) => logWarning("The tab of changelog queries cannot be shown", error)
    }
}

/**
 * An ended query, with its error if it failed.
 *
 * @param at
 *   the end time, in ms since 1970
 */
private[web] final case class EndedQuery(
    name: String,
    runId: String,
    at: Long,
    error: Option[String])

/** The last ended queries of an application. */
private[web] class EndedQueries {
  import EndedQueries.Most

  private val running = mutable.Map.empty[UUID, (StreamingQuery, Throwable => String)]
  private val ended = mutable.ArrayDeque.empty[EndedQuery]

  /**
   * Watches a running query.
   *
   * @param tell
   *   returns an error as a line of text
   */
  def watch(query: StreamingQuery, tell: Throwable => String): Unit = {
    synchronized(running(query.runId) = query -> tell)
    if (!query.isActive) end(query.runId)
  }

  /** The ended queries, newest first. */
  def all: Seq[EndedQuery] = synchronized(ended.toSeq.reverse)

  /** Records the end of a query. Called for every query. */
  def end(runId: UUID): Unit = synchronized {
    running.remove(runId).foreach { case (query, tell) =>
      ended += EndedQuery(
        Option(query.name).getOrElse(query.id.toString),
        runId.toString,
        System.currentTimeMillis(),
        query.exception.map(tell))
      if (ended.size > Most) ended.removeHead()
    }
  }
}

private object EndedQueries {
  private val Most = 20
}

/** Tables and values in the style of Spark's UI. */
private[web] object Table {

  def apply(heads: Seq[String], rows: Seq[Seq[NodeSeq]]): Elem =
    <div class="table-responsive"><table class="table table-bordered table-sm table-striped">
      <thead><tr>{heads.map(head => <th>{head}</th>)}</tr></thead>
      <tbody>{rows.map(row => <tr>{row.map(cell => <td>{cell}</td>)}</tr>)}</tbody>
    </table></div>

  /** Returns a heading with a table, or with the text `none` if the table has no rows. */
  def under(heading: String, heads: Seq[String], rows: Seq[Seq[NodeSeq]], none: String): NodeSeq =
    <h4>{heading}</h4> ++ (if (rows.isEmpty) <p>{none}</p> else apply(heads, rows))

  def text(value: Option[String]): NodeSeq = value.fold(NodeSeq.Empty)(Text(_))

  def text(value: String): NodeSeq = Text(value)

  def count(value: Option[Long]): NodeSeq = text(value.map(number => f"$number%,d"))

  def bytes(value: Option[Long]): NodeSeq = text(value.map(Utils.bytesToString))

  def seconds(value: Option[Double]): NodeSeq = text(value.map(seconds => f"$seconds%,.1f s"))

  def link(address: String, text: String): Elem = <a href={address}>{text}</a>

  /** Returns the time since `time`. */
  def since(time: Instant): NodeSeq =
    seconds(Some(Duration.between(time, Instant.now()).toMillis / 1000.0))
}
