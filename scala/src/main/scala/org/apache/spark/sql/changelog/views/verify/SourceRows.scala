// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.verify

import java.util.UUID

import org.apache.hadoop.fs.{FileSystem, FileUtil, Path}

import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.compat.{OneBatch, StreamLogs}
import org.apache.spark.sql.changelog.sources.tables.TableRows

/**
 * All rows the sources of a query had delivered when a batch of it was committed, as Spark itself
 * reads them when a query goes on from its checkpoint.
 *
 * A throw-away query over the same sources gets a checkpoint that says its first batch was begun
 * and goes up to the offsets of that batch. Spark then runs it, whatever the sources are.
 *
 * @param checkpoint
 *   the query's own
 */
class SourceRows(session: SparkSession, checkpoint: Path) {
  private val files: FileSystem = checkpoint.getFileSystem(session.sessionState.newHadoopConf())

  /** The last batch that was begun, and the last that is done. */
  def lastBatches: (Option[Long], Option[Long]) = {
    val logs = new BatchLogs(session, checkpoint)
    (logs.lastBegun, logs.lastDone)
  }

  /** What time it is for a batch, in ms. */
  def timeOf(batchId: Long): Option[Long] = new BatchLogs(session, checkpoint).timeOf(batchId)

  /**
   * Hands the rows of each stream of `streaming`, a query as Spark runs it, to `read`, as plans that
   * can be computed as long as `read` runs.
   */
  def upTo(batchId: Long, streaming: LogicalPlan)(
      read: Seq[(LogicalPlan, LogicalPlan)] => Unit): Unit = {
    // a source that is read several times has an offset for each reading
    val streams = streaming.collect {
      case relation: StreamingRelation => relation
      case relation: StreamingRelationV2 => relation
    }
    val copy = new Path(checkpoint.getParent, s"verify-${UUID.randomUUID}")
    try {
      copyLog(batchId, copy)
      // what the query computes is never computed: it only names the sources, in their order
      val inputs = streams.map(Project(Seq(Alias(Literal(1), "one")()), _))
      val plan = if (inputs.size == 1) inputs.head else Union(inputs)
      OneBatch.run(session, plan, copy) { (batch, query) =>
        read(streams.zip(inputsOf(query).map(atRest(batch, _))))
      }
    } finally files.delete(copy, true)
  }

  private def copyLog(batchId: Long, copy: Path): Unit = {
    def copyTo(from: String, to: String) = {
      val conf = session.sessionState.newHadoopConf()
      val source = new Path(checkpoint, from)
      if (files.exists(source)) {
        FileUtil.copy(files, source, files, new Path(copy, to), false, conf)
      }
    }
    files.mkdirs(new Path(copy, "offsets"))
    copyTo(s"offsets/$batchId", "offsets/0")
    copyTo("sources", "sources")
    StreamLogs.writeIdentity(new Path(copy, "metadata"), session.sessionState.newHadoopConf())
  }

  /** Takes the plan of the batch apart into the rows of each stream. */
  private def inputsOf(query: LogicalPlan): Seq[LogicalPlan] = {
    val inputs = query match {
      case union: Union => union.children
      case single => Seq(single)
    }
    inputs.map {
      case Project(_, input) => input
      case other => throw new IllegalStateException(s"unexpected input:\n$other")
    }
  }

  /** The plan of a batch as one that is no stream. */
  private def atRest(batch: SparkSession, plan: LogicalPlan): LogicalPlan =
    OneBatch.atRest(batch, plan.transform { case rows: TableRows => rows.atRest })
}
