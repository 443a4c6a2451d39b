// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.web

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.streaming.StreamingQuery

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
