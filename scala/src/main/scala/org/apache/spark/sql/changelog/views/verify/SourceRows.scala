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
 * SourceRows: the rows delivered by the sources of a query up to one committed batch, as read by Spark after a restart
 * of the query.
 *
 * A temporary query over the same sources gets a checkpoint that claims a first batch ending at the offsets of the
 * committed batch. Spark then runs this batch for any kind of source.
 *
 * @param checkpoint
 *   the checkpoint of the query itself
 */
class SourceRows(session: SparkSession, checkpoint: Path) {
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files: FileSystem = checkpoint.getFileSystem(hadoopConf)
  private def logs = new BatchLogs(session, checkpoint) // the query may run meanwhile

  /** Returns the last batch begun and the last batch done. */
  def lastBatches: (Option[Long], Option[Long]) = (logs.lastBegun, logs.lastDone)

  /** Returns the current time of a batch, in ms. */
  def timeOf(batchId: Long): Option[Long] = logs.timeOf(batchId)

  /**
   * Passes the rows of each stream in `streaming`, a query analyzed by Spark, to `read`. The rows are plans, valid
   * while `read` runs. Fails if the query has continued meanwhile, and the sources have deleted the files of the batch.
   */
  def upTo(batchId: Long, streaming: LogicalPlan)(
      read: Seq[(LogicalPlan, LogicalPlan)] => Unit): Unit = {
    // A source with several reads has one offset per read.
    val streams = StreamRows.in(streaming)
    val copy = new Path(checkpoint.getParent, s"verify-${UUID.randomUUID}")
    val loans = mutable.ArrayBuffer.empty[Closeable]
    try {
      copyOffsets(batchId, copy)
      offsetsBySource(batchId).foreach { case (source, offset) =>
        val place = s"sources/$source"
        loans ++= SourceFiles.lend(
          new Path(checkpoint, place),
          offset,
          new Path(copy, place),
          hadoopConf)
      }
      StreamRows.read(session, streams, copy)(read)
    } finally {
      loans.foreach(_.close())
      files.delete(copy, true)
    }
  }

  /** Returns the folders of all sources, with the end offsets of the batch. */
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
