// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Limit, LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.connector.read.streaming.{Offset => AnyOffset, ReadLimit}
import org.apache.spark.sql.execution.streaming.Offset
import org.apache.spark.sql.execution.streaming.runtime.{LongOffset, StreamingExecutionRelation}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame => AnyDataFrame}

import org.apache.spark.sql.changelog.errors.ExplainErrors
import org.apache.spark.sql.changelog.plans.FromChangelog
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshotData
import org.apache.spark.sql.changelog.sources.{LatestOffsetSource, StreamRows}

/** The rows that a dry run reads in place of a query's sources. */
sealed trait Sample {

  /** The changes of a query, over the sample. */
  private[dryrun] def in(session: SparkSession, changes: LogicalPlan): LogicalPlan
}

object Sample {

  /** Changes that are written down, as [[SampleText]] reads them. */
  case class Changes(text: String) extends Sample {
    override private[dryrun] def in(session: SparkSession, changes: LogicalPlan): LogicalPlan =
      new WrittenChanges(session, SampleText(text))(changes)
  }

  /** So many rows of each source, those that come first. Each batch has one of each. */
  case class FirstRows(count: Int) extends Sample {
    override private[dryrun] def in(session: SparkSession, changes: LogicalPlan): LogicalPlan =
      new RowsOfSources(session, count)(changes)
  }

  /** A stream of rows, a batch after the other, in the columns of what it stands for. */
  private[dryrun] def stream(
      session: SparkSession,
      columns: Seq[Attribute],
      batches: IndexedSeq[Seq[InternalRow]]): LogicalPlan =
    StreamingExecutionRelation(new SampleSource(session, columns, batches), columns, None)(
      session)
}

/**
 * Gives the rows of a sample, batch by batch. Each batch of the query takes one more from each of its
 * sources, so that they go together.
 *
 * @param batches
 *   the rows of each, as many as the other sources have
 */
private[dryrun] class SampleSource(
    session: SparkSession,
    columns: Seq[Attribute],
    batches: IndexedSeq[Seq[InternalRow]])
    extends LatestOffsetSource {

  override val schema: StructType = fromAttributes(columns)

  override def prepareForTriggerAvailableNow(): Unit = ()

  override def latestOffset(start: AnyOffset, limit: ReadLimit): AnyOffset =
    LongOffset(batches.size.toLong.min(Option(start).fold(0L)(numberOf) + 1))

  override def deserializeOffset(json: String): AnyOffset = LongOffset(json.toLong)

  override def getBatch(start: Option[Offset], end: Offset): AnyDataFrame = {
    val rows = batches.slice(start.fold(0L)(numberOf).toInt, numberOf(end).toInt).flatten
    Dataset.ofRows(session, LocalRelation(columns, rows, isStreaming = true))
  }

  override def stop(): Unit = ()

  override def toString: String = "sample"

  private def numberOf(offset: AnyOffset): Long = offset.json.toLong
}

/** Lets a query read the first rows of each of its sources, a batch for each of them. */
private[dryrun] class RowsOfSources(session: SparkSession, count: Int) {

  def apply(changes: LogicalPlan): LogicalPlan = {
    val sources = changes.collectWithSubqueries { case source: FromChangelog => source.child }
    if (sources.isEmpty) throw ExplainErrors.sampleEmpty("the query reads no changes")
    val (streams, tables) = sources.distinct.partition(_.isStreaming)
    val rows = ofStreams(streams.flatMap(StreamRows.in).distinct) ++
      tables.map(table => table -> first(session, table))
    val size = rows.map(_._2.size).maxOption.getOrElse(0)
    if (size == 0) throw ExplainErrors.sampleEmpty("its sources have none yet")
    val sampled = rows.map { case (source, rows) =>
      val batches = (0 until size).map(index => rows.slice(index, index + 1))
      source -> Sample.stream(session, source.output, batches)
    }.toMap
    changes.transformDownWithSubqueries {
      case plan if sampled.contains(plan) => sampled(plan)
    }
  }

  private def ofStreams(streams: Seq[LogicalPlan]): Seq[(LogicalPlan, Seq[InternalRow])] =
    if (streams.isEmpty) Nil
    else {
      // of a snapshot its stream would make a copy first
      val snapshots = streams.flatMap { stream =>
        InitialSnapshotData.rowsOf(stream).map(stream -> first(session, _))
      }
      val others = streams.filterNot(stream => snapshots.exists(_._1 == stream))
      var rows = Seq.empty[(LogicalPlan, Seq[InternalRow])]
      if (others.nonEmpty) ThrowawayFolder.use(session) { checkpoint =>
        StreamRows.read(session, others, checkpoint) { read =>
          rows = read.map { case (stream, plan) => stream -> first(session, plan) }
        }
      }
      snapshots ++ rows
    }

  private def first(session: SparkSession, plan: LogicalPlan): Seq[InternalRow] =
    Dataset
      .ofRows(session, Limit(Literal(count), plan))
      .queryExecution
      .executedPlan
      .executeCollect()
      .map(_.copy())
      .toSeq
}
