// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryListenerBus
import org.apache.spark.sql.streaming.StreamingQueryListener._
import org.apache.spark.sql.streaming.{
  StreamingQuery, StreamingQueryException, StreamingQueryListener
}

/**
 * Passes the events of a cloned session's queries to the original session's listeners.
 *
 * For each session that starts a query, Spark adds a listener bus to the application's and never removes the
 * bus. The bus of this class exists only while a query of the clone runs.
 */
final class ForwardedListeners(creator: SparkSession, clone: SparkSession) {
  private val application = creator.sparkContext.listenerBus
  private val running = mutable.Set.empty[UUID]
  private var starting = 0
  private var bus: Option[StreamingQueryListenerBus] = None

  /** Starts a query of the clone. */
  def start(query: => StreamingQuery): StreamingQuery = {
    synchronized {
      bus match {
        case None => bus = Some(made())
        case Some(bus) if isIdle =>
          application.addToQueue(bus, StreamingQueryListenerBus.STREAM_EVENT_QUERY)
        case _ =>
      }
      starting += 1
    }
    try query
    finally
      synchronized {
        starting -= 1
        removeIfIdle()
      }
  }

  /**
   * Runs a query of the clone to its end. Throws the cause of the query's failure, without Spark's wrapper,
   * because no other code knows the query.
   */
  def run(query: => StreamingQuery): Unit = {
    val running = start(query)
    try {
      running.awaitTermination()
      ()
    } catch {
      case error: StreamingQueryException if error.getCause != null => throw error.getCause
    } finally running.stop()
  }

  private def made(): StreamingQueryListenerBus = {
    // creates the bus and adds the bus to the application's
    val streams = clone.streams
    creator.streams
      .listListeners()
      .diff(streams.listListeners())
      .foreach(streams.addListener)
    streams.addListener(Lifetimes)
    application
      .findListenersByClass[StreamingQueryListenerBus]()
      .find(_.listeners.contains(Lifetimes))
      .get
  }

  private def isIdle: Boolean = starting == 0 && running.isEmpty

  private def removeIfIdle(): Unit = if (isIdle) bus.foreach(application.removeListener)

  private object Lifetimes extends StreamingQueryListener {
    // called before `start` returns
    override def onQueryStarted(event: QueryStartedEvent): Unit =
      ForwardedListeners.this.synchronized {
        running += event.runId
      }

    override def onQueryProgress(event: QueryProgressEvent): Unit = ()

    override def onQueryTerminated(event: QueryTerminatedEvent): Unit =
      ForwardedListeners.this.synchronized {
        running -= event.runId
        removeIfIdle()
      }
  }
}
