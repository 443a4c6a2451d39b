// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.plans.logical.{
  EventTimeWatermark, LeafNode, LogicalPlan, Project
}
import org.apache.spark.sql.classic.{DataFrame, Dataset}

import org.apache.spark.sql.changelog.analysis.ResolvePassingTime
import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.compat.{RunningStream, StreamLogs}
import org.apache.spark.sql.changelog.identity.{QueryRecord, QueryRecordFile}
import org.apache.spark.sql.changelog.plans.{Duplicates, FromChangelog, InputMode}
import org.apache.spark.sql.changelog.sources.StreamRows

/**
 * RowsByBatchPlan: computes the rows of a view by a batch plan, without state, at pinned versions of its sources.
 *
 * {{{
 *   Join                                      Join
 *   :- FromChangelog                          :- rows of orders at version 7
 *   :  +- changes of orders, a stream    =>   +- rows of customers at version 3
 *   +- FromChangelog
 *      +- changes of customers, a stream
 * }}}
 * The checkpoint then claims a first batch that has begun, with the end offsets of each source. A query started from
 * the checkpoint computes the state of this batch and continues with later changes.
 *
 * @param query
 *   a recomputable query: all sources begin with inserted rows
 */
private[views] class RowsByBatchPlan(query: ViewQuery) {
  private val session = query.session

  /**
   * Pins the sources, and passes the rows to `write` with the query id known to sinks. Returns whether rows were
   * written: false for sources without a batch, or if `restrict` returns None.
   *
   * @param checkpoint
   *   a new checkpoint for the query
   * @param restrict
   *   selects the source rows to read. On None, nothing is written.
   */
  def compute(
      checkpoint: Path,
      restrict: RowsByBatchPlan.Read => Option[RowsByBatchPlan.Read] = Some(_))(
      write: (DataFrame, String) => Unit): Boolean = {
    val analyzed = query.changes.queryExecution.analyzed
    val streams = StreamRows.in(analyzed)
    val logs = new BatchLogs(session, checkpoint)
    var isWritten = false
    StreamRows.read(session, streams, checkpoint)(restrict(_).foreach { delivered =>
      val plan = RowsByBatchPlan.over(RowsByBatchPlan.withoutChanges(query.analyzed), delivered)
      val timed = logs.timeOf(0).fold(plan)(ResolvePassingTime.at(plan, _))
      val id = new StreamLogs(session, checkpoint).queryId.get
      RunningStream.outside(session.sparkContext) {
        session.withActive(write(Dataset.ofRows(session, timed), id))
      }
      // The record pins the meaning of the query's names until the state is computed.
      val hadoopConf = session.sessionState.newHadoopConf()
      val record = QueryRecord(analyzed, session.sessionState.conf)
      new QueryRecordFile(checkpoint, hadoopConf).write(record)
      logs.markWithoutState()
      isWritten = true
    })
    // Spark has logged the batch as done at this point.
    logs.uncommitFirstBatch()
    isWritten
  }
}

private[views] object RowsByBatchPlan {

  /** The sources of a query, each with the rows read. */
  type Read = Seq[(LogicalPlan, LogicalPlan)]

  /** Returns a query over the rows read, in place of streams. */
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

  /** Reads inserted rows as plain rows, to avoid netting. */
  def withoutChanges(query: LogicalPlan): LogicalPlan =
    query.transformDownWithSubqueries {
      case source: FromChangelog if source.streaming && onlyInserts(source) =>
        Project(source.output, source.child)
    }

  /** Returns whether the inserted rows of a source need no further processing. */
  private def onlyInserts(source: FromChangelog): Boolean =
    source.input == InputMode.Retract && source.sequence.isEmpty && !source.skipsBadRows &&
      source.unavailable.isEmpty && source.duplicates == Duplicates.Trust &&
      source.snapshot.isEmpty

  private def withoutWatermarks(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithSubqueries { case watermark: EventTimeWatermark => watermark.child }
}
