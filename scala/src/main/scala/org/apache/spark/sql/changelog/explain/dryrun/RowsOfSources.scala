// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical.{Limit, LogicalPlan}
import org.apache.spark.sql.classic.{Dataset, SparkSession}

import org.apache.spark.sql.changelog.errors.ExplainErrors
import org.apache.spark.sql.changelog.plans.FromChangelog
import org.apache.spark.sql.changelog.sources.StreamRows
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshotData

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
