// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.verify

import java.util.UUID

import org.apache.hadoop.fs.{FileSystem, FileUtil, Path}

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.compat.StreamLogs
import org.apache.spark.sql.changelog.sources.StreamRows

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
    val streams = StreamRows.in(streaming)
    val copy = new Path(checkpoint.getParent, s"verify-${UUID.randomUUID}")
    try {
      copyLog(batchId, copy)
      StreamRows.read(session, streams, copy)(read)
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
}
