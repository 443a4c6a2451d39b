// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.plans.logical.{
  EventTimeWatermark,
  LeafNode,
  LogicalPlan,
  Project
}
import org.apache.spark.sql.classic.{DataFrame, Dataset}

import org.apache.spark.sql.changelog.analysis.ResolvePassingTime
import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.compat.{RunningStream, StreamLogs}
import org.apache.spark.sql.changelog.identity.{QueryRecord, QueryRecordFile}
import org.apache.spark.sql.changelog.plans.{Duplicates, FromChangelog, InputMode}
import org.apache.spark.sql.changelog.sources.StreamRows

/**
 * Computes the rows of a view by a batch plan, without state, at pinned versions of its sources.
 *
 * {{{
 *   Join                                      Join
 *   :- FromChangelog                          :- rows of orders at version 7
 *   :  +- changes of orders, a stream    =>   +- rows of customers at version 3
 *   +- FromChangelog
 *      +- changes of customers, a stream
 * }}}
 * The checkpoint then says that the first batch was begun, and up to where it reads each source. A query that starts
 * from there computes the state of that batch, and goes on with what has changed since.
 *
 * @param query
 *   one that can be recomputed: all its sources begin with rows that are inserted
 */
private[views] class RowsAtOnce(query: ViewQuery) {
  private val session = query.session

  /**
   * Pins the sources, and hands the rows to `write` with the id that sinks know the query by. Returns whether there was
   * anything to read.
   *
   * @param checkpoint
   *   a new one, of the query
   * @param restrict
   *   which of the rows that the sources have are to be read; if none, nothing is written
   */
  def compute(checkpoint: Path, restrict: RowsAtOnce.Read => Option[RowsAtOnce.Read] = Some(_))(
      write: (DataFrame, String) => Unit): Boolean = {
    val analyzed = query.changes.queryExecution.analyzed
    val streams = StreamRows.in(analyzed)
    val logs = new BatchLogs(session, checkpoint)
    var isWritten = false
    StreamRows.read(session, streams, checkpoint)(restrict(_).foreach { delivered =>
      val plan = RowsAtOnce.over(RowsAtOnce.withoutChanges(query.analyzed), delivered)
      val timed = logs.timeOf(0).fold(plan)(ResolvePassingTime.at(plan, _))
      val id = new StreamLogs(session, checkpoint).queryId.get
      RunningStream.outside(session.sparkContext) {
        session.withActive(write(Dataset.ofRows(session, timed), id))
      }
      // the rows are of this query, whatever its names mean when the state is computed
      val hadoopConf = session.sessionState.newHadoopConf()
      val record = QueryRecord(analyzed, session.sessionState.conf)
      new QueryRecordFile(checkpoint, hadoopConf).write(record)
      logs.beginWithoutState()
      isWritten = true
    })
    // Spark has noted the batch as done by now
    logs.leaveOutState()
    isWritten
  }
}

private[views] object RowsAtOnce {

  /** The sources of a query, each with its rows. */
  type Read = Seq[(LogicalPlan, LogicalPlan)]

  /** A query over the rows that were read, instead of over streams. */
  def over(query: LogicalPlan, read: Read): LogicalPlan =
    withoutWatermarks(query).transformDownWithSubqueries {
      case source: FromChangelog if source.streaming => source.copy(streaming = false)
      case leaf: LeafNode if leaf.isStreaming =>
        val (stream, rows) = read
          .find { case (stream, _) => stream.outputSet == leaf.outputSet }
          .orElse(read.find { case (stream, _) => stream.sameResult(leaf) })
          .getOrElse(throw new IllegalStateException(s"no rows were read of\n$leaf"))
        require(stream.output.size == leaf.output.size)
        Project(
          leaf.output.zip(rows.output).map { case (column, value) =>
            Alias(value, column.name)(exprId = column.exprId)
          },
          rows)
    }

  /** Reads inserted rows as rows: then nothing has to be netted. */
  def withoutChanges(query: LogicalPlan): LogicalPlan =
    query.transformDownWithSubqueries {
      case source: FromChangelog if source.streaming && onlyInserts(source) =>
        Project(source.output, source.child)
    }

  /** Whether a source that begins with inserted rows needs no more than those. */
  private def onlyInserts(source: FromChangelog): Boolean =
    source.input == InputMode.Retract && source.sequence.isEmpty && !source.skipsBadRows &&
      source.unavailable.isEmpty && source.duplicates == Duplicates.Trust &&
      source.snapshot.isEmpty

  private def withoutWatermarks(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithSubqueries { case watermark: EventTimeWatermark => watermark.child }
}
