// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.history

import java.time.Instant

import org.apache.spark.sql.streaming.StreamingQuery

import org.apache.spark.sql.changelog.compat.RunningStream
import org.apache.spark.sql.changelog.sinks.ChangelogSink

/** What a refresh tells of itself while it runs, as far as it has come. */
class RefreshReport {
  private val started = System.currentTimeMillis()

  @volatile private var record =
    RefreshRecord(started, asOf = started, started, mode = "incremental", reason = "")

  def isFor(mode: String, reason: String): Unit =
    record = record.copy(mode = mode, reason = reason)

  /** All that had been delivered by then is in the view. */
  def isAsOf(time: Long): Unit = record = record.copy(asOf = time)

  /** Up to where each source is read. */
  def reads(versions: Map[String, String]): Unit =
    record = record.copy(versions = record.versions ++ versions)

  def isExpectedToCost(estimate: RefreshEstimate): Unit =
    record = record.copy(estimate = Some(estimate))

  /** How much the tables held of which all rows were read. */
  def readAll(bytes: Long): Unit =
    if (record.estimate.isEmpty) isExpectedToCost(RefreshEstimate(bytes))

  /** The last version of the view's table. */
  def shows(version: Option[Long]): Unit = record = record.copy(shown = version)

  def wrote(rows: Long): Unit = record = record.copy(rowsWritten = Some(rows))

  def changed(written: Long, takenBack: Long): Unit =
    record = record.copy(rowsWritten = Some(written), rowsTakenBack = Some(takenBack))

  /** Changes arrived while it ran, and are in the view up to its last batch. */
  def ran(query: StreamingQuery): Unit = {
    did(query)
    Option(query.lastProgress).foreach { last =>
      record = record.copy(asOf = Instant.parse(last.timestamp).toEpochMilli)
    }
  }

  /** All a query has done since it was started. */
  def did(query: StreamingQuery): Unit = {
    val progress = query.recentProgress
    record = record.copy(rowsRead = Some(progress.map(_.numInputRows).sum))
    progress.lastOption.foreach { last =>
      val ends = last.sources.map(source => source.description -> source.endOffset)
      reads(ends.filter(_._2 != null).toMap -- record.versions.keySet)
    }
    // a batch that is not run tells of no operators
    progress.findLast(_.durationMs.containsKey("addBatch")).foreach { last =>
      record = record.copy(
        stateRows = Some(last.stateOperators.map(_.numRowsTotal).sum),
        stateBytes = Some(last.stateOperators.map(_.memoryUsedBytes).sum))
    }
    RunningStream.sinkOf(query) match {
      case Some(sink: ChangelogSink) =>
        record = record.copy(
          rowsWritten = Some(sink.counts.written),
          rowsTakenBack = Some(sink.counts.takenBack))
      case _ =>
    }
  }

  def finished(error: Option[String]): RefreshRecord =
    record.copy(finished = System.currentTimeMillis(), error = error)
}
