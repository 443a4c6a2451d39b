// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.history

import java.time.Instant

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.compat.RunningStream
import org.apache.spark.sql.changelog.sinks.ChangelogSink

/** RefreshReport: collects the record of a refresh while the refresh runs. */
class RefreshReport {
  private val started = System.currentTimeMillis()

  @volatile private var record =
    RefreshRecord(started, asOf = started, started, mode = "incremental", reason = "")

  def isFor(mode: String, reason: String): Unit =
    record = record.copy(mode = mode, reason = reason)

  /** Sets the time up to which all delivered data is in the view. */
  def isAsOf(time: Long): Unit = record = record.copy(asOf = time)

  /** Adds end offsets of sources. */
  def reads(versions: Map[String, String]): Unit =
    record = record.copy(versions = record.versions ++ versions)

  def isExpectedToCost(estimate: RefreshEstimate): Unit =
    record = record.copy(estimate = Some(estimate))

  /** Sets the size of completely read source tables. */
  def readAll(bytes: Long): Unit =
    if (record.estimate.isEmpty) isExpectedToCost(RefreshEstimate(bytes))

  /** Sets the last version of the view's table. */
  def shows(version: Option[Long]): Unit = record = record.copy(shown = version)

  def isShown: Boolean = record.shown.nonEmpty

  def wrote(rows: Long): Unit = record = record.copy(rowsWritten = Some(rows))

  def changed(written: Long, takenBack: Long): Unit =
    record = record.copy(rowsWritten = Some(written), rowsRetracted = Some(takenBack))

  /** Reports a query that received changes while running. The view contains all changes up to the last batch. */
  def ran(query: StreamingQuery): Unit = {
    did(query)
    Option(query.lastProgress).foreach { last =>
      record = record.copy(asOf = Instant.parse(last.timestamp).toEpochMilli)
    }
  }

  /** Reports the work of a query since its start. */
  def did(query: StreamingQuery): Unit = {
    val progress = query.recentProgress
    val rowsRead = math.max(progress.map(_.numInputRows).sum, RunningStream.rowsScanned(query))
    record = record.copy(rowsRead = Some(rowsRead))
    progress.lastOption.foreach { last =>
      val ends = last.sources.map(source => source.description -> source.endOffset)
      reads(ends.filter(_._2 != null).toMap -- record.versions.keySet)
    }
    // The progress of an idle trigger lists no operators.
    progress.findLast(_.durationMs.containsKey("addBatch")).foreach { last =>
      record = record.copy(
        stateRows = Some(last.stateOperators.map(_.numRowsTotal).sum),
        stateBytes = Some(last.stateOperators.map(_.memoryUsedBytes).sum))
    }
    RunningStream.sinkOf(query) match {
      case Some(sink: ChangelogSink) =>
        record = record.copy(
          rowsWritten = Some(sink.counts.written),
          rowsRetracted = Some(sink.counts.takenBack))
      case _ =>
    }
  }

  def finished(error: Option[String]): RefreshRecord =
    record.copy(finished = System.currentTimeMillis(), error = error)
}

/** RefreshError: describes the failure of a refresh in one line, without secrets. */
object RefreshError {
  private val Longest = 1000

  def apply(session: SparkSession, error: Throwable): String = {
    val cause = named(error).getOrElse(chain(error).last)
    val message = Option(cause.getMessage).getOrElse(error.getClass.getName)
    val line = message.linesIterator.map(_.trim).find(_.nonEmpty).getOrElse("")
    Utils.redact(session.sessionState.conf.stringRedactionPattern, line).take(Longest)
  }

  /** Returns the informative cause of an error, without Spark's wrappers. */
  def causeOf(error: Throwable): Throwable = named(error).getOrElse(error)

  /** Returns the cause with an error condition. Spark wraps the failures of streams, tasks and threads. */
  private def named(error: Throwable): Option[Throwable] = {
    val conditions = chain(error).collect {
      case cause: SparkThrowable if cause.getCondition != null => cause -> cause.getCondition
    }
    conditions
      .find { case (_, condition) => condition.startsWith("CHANGELOG") }
      .orElse(conditions.find { case (_, condition) => !wrappers.contains(condition) })
      .map { case (cause, _) => cause: Throwable }
  }

  private def chain(error: Throwable): Seq[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq

  private val wrappers = Set("STREAM_FAILED", "INTERNAL_ERROR", "TASK_WRITE_FAILED")
}
