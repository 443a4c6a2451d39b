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

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.plans.FromChangelog
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshotData
import org.apache.spark.sql.changelog.sources.{LatestOffsetSource, StreamRows}

/** Sample: the rows read by a dry run in place of a query's sources. */
sealed trait Sample {

  /** Returns the changes of a query, over the sample. */
  private[dryrun] def in(session: SparkSession, changes: LogicalPlan): LogicalPlan
}

object Sample {

  /** Changes in the text form of [[SampleText]]. */
  case class Changes(text: String) extends Sample {
    override private[dryrun] def in(session: SparkSession, changes: LogicalPlan): LogicalPlan =
      new WrittenChanges(session, SampleText(text))(changes)
  }

  /** The first `count` rows of each source. Each batch has one row of each source. */
  case class FirstRows(count: Int) extends Sample {
    override private[dryrun] def in(session: SparkSession, changes: LogicalPlan): LogicalPlan =
      new RowsOfSources(session, count)(changes)
  }

  /** Returns a stream of rows in the columns of the replaced source, batch by batch. */
  private[dryrun] def stream(
      session: SparkSession,
      columns: Seq[Attribute],
      batches: IndexedSeq[Seq[InternalRow]]): LogicalPlan =
    StreamingExecutionRelation(new SampleSource(session, columns, batches), columns, None)(
      session)
}

/**
 * SampleSource: emits the rows of a sample. Each batch of the query takes the next batch of every
 * source, so that sources advance together.
 *
 * @param batches
 *   the rows of each batch, in as many batches as for other sources
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

/** Replaces the sources of a query by their first rows, one row per batch. */
private[dryrun] class RowsOfSources(session: SparkSession, count: Int) {

  def apply(changes: LogicalPlan): LogicalPlan = {
    val sources = changes.collectWithSubqueries { case source: FromChangelog => source.child }
    if (sources.isEmpty)
      throw analysis("CHANGELOG_DRY_RUN_WITHOUT_ROWS", "reason" -> "the query reads no changes")
    val (streams, tables) = sources.distinct.partition(_.isStreaming)
    val rows = ofStreams(streams.flatMap(StreamRows.in).distinct) ++
      tables.map(table => table -> first(session, table))
    val size = rows.map(_._2.size).maxOption.getOrElse(0)
    if (size == 0)
      throw analysis("CHANGELOG_DRY_RUN_WITHOUT_ROWS", "reason" -> "the sources have no rows yet")
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
      // The stream of a snapshot would first copy the snapshot, so its rows are read directly.
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
