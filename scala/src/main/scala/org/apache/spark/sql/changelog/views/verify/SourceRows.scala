// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.verify

import java.io.Closeable
import java.util.UUID

import scala.collection.mutable

import org.apache.hadoop.fs.{FileSystem, FileUtil, Path}

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.compat.StreamLogs
import org.apache.spark.sql.changelog.sources.{SourceFiles, StreamRows}

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
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files: FileSystem = checkpoint.getFileSystem(hadoopConf)
  private val logs = new BatchLogs(session, checkpoint)

  /** The last batch that was begun, and the last that is done. */
  def lastBatches: (Option[Long], Option[Long]) = (logs.lastBegun, logs.lastDone)

  /** What time it is for a batch, in ms. */
  def timeOf(batchId: Long): Option[Long] = logs.timeOf(batchId)

  /**
   * Hands the rows of each stream of `streaming`, a query as Spark runs it, to `read`, as plans that
   * can be computed as long as `read` runs. Fails if the query has gone on meanwhile, and its sources have
   * deleted what they had kept of that batch.
   */
  def upTo(batchId: Long, streaming: LogicalPlan)(
      read: Seq[(LogicalPlan, LogicalPlan)] => Unit): Unit = {
    // a source that is read several times has an offset for each reading
    val streams = StreamRows.in(streaming)
    val copy = new Path(checkpoint.getParent, s"verify-${UUID.randomUUID}")
    val lent = mutable.ArrayBuffer.empty[Closeable]
    try {
      copyOffsets(batchId, copy)
      offsetsBySource(batchId).foreach { case (source, offset) =>
        val place = s"sources/$source"
        lent ++= SourceFiles.lend(
          new Path(checkpoint, place),
          offset,
          new Path(copy, place),
          hadoopConf)
      }
      StreamRows.read(session, streams, copy)(read)
    } finally {
      lent.foreach(_.close())
      files.delete(copy, true)
    }
  }

  /** The folders of all sources, with up to where the batch has read them. */
  private def offsetsBySource(batchId: Long): Seq[(String, Option[String])] = {
    val known = logs.readBy(batchId).map { case (folder, offset) => folder.getName -> offset }
    val folder = new Path(checkpoint, "sources")
    val all = if (files.exists(folder)) files.listStatus(folder).toSeq else Nil
    all.map(_.getPath.getName).map(source => source -> known.toMap.get(source))
  }

  private def copyOffsets(batchId: Long, copy: Path): Unit = {
    val logged = new Path(checkpoint, s"offsets/$batchId")
    files.mkdirs(new Path(copy, "offsets"))
    FileUtil.copy(files, logged, files, new Path(copy, "offsets/0"), false, hadoopConf)
    StreamLogs.writeIdentity(new Path(copy, "metadata"), hadoopConf)
  }
}
