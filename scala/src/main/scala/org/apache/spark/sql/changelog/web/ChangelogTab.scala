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

/**
 * A query that has ended, and why if it failed.
 *
 * @param at
 *   when, in ms since 1970
 */
private[web] final case class EndedQuery(
    name: String,
    runId: String,
    at: Long,
    error: Option[String])

/** The queries of an application that have ended last. */
private[web] class EndedQueries {
  import EndedQueries.Most

  private val running = mutable.Map.empty[UUID, (StreamingQuery, Throwable => String)]
  private val ended = mutable.ArrayDeque.empty[EndedQuery]

  /** @param tell says in a line what went wrong */
  def watch(query: StreamingQuery, tell: Throwable => String): Unit = {
    synchronized(running(query.runId) = query -> tell)
    if (!query.isActive) end(query.runId)
  }

  /** The newest first. */
  def all: Seq[EndedQuery] = synchronized(ended.toSeq.reverse)

  /** Called when any query ends. */
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

/** Tables and values as pages of Spark's UI show them. */
private[web] object Table {

  def apply(heads: Seq[String], rows: Seq[Seq[NodeSeq]]): Elem =
    <div class="table-responsive"><table class="table table-bordered table-sm table-striped">
      <thead><tr>{heads.map(head => <th>{head}</th>)}</tr></thead>
      <tbody>{rows.map(row => <tr>{row.map(cell => <td>{cell}</td>)}</tr>)}</tbody>
    </table></div>

  /** A heading with a table below, or with what is said where that has no rows. */
  def under(heading: String, heads: Seq[String], rows: Seq[Seq[NodeSeq]], none: String): NodeSeq =
    <h4>{heading}</h4> ++ (if (rows.isEmpty) <p>{none}</p> else apply(heads, rows))

  def text(value: Option[String]): NodeSeq = value.fold(NodeSeq.Empty)(Text(_))

  def text(value: String): NodeSeq = Text(value)

  def count(value: Option[Long]): NodeSeq = text(value.map(number => f"$number%,d"))

  def bytes(value: Option[Long]): NodeSeq = text(value.map(Utils.bytesToString))

  def seconds(value: Option[Double]): NodeSeq = text(value.map(seconds => f"$seconds%,.1f s"))

  def link(address: String, text: String): Elem = <a href={address}>{text}</a>

  /** How long ago something was, at most. */
  def since(time: Instant): NodeSeq =
    seconds(Some(Duration.between(time, Instant.now()).toMillis / 1000.0))
}
