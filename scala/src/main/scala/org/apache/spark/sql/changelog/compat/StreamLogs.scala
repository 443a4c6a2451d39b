// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.{
  CommitLog,
  OffsetMap,
  OffsetSeq,
  OffsetSeqBase,
  OffsetSeqLog
}
import org.apache.spark.sql.execution.streaming.runtime.StreamMetadata

/** The logs of batches in the checkpoint of a query, entry by entry. */
final class StreamLogs(session: SparkSession, checkpoint: Path) {

  /** The batches in the log of those that were begun. */
  def begun: Seq[Long] = offsetLog.listBatchesOnDisk.toSeq

  /** What was to be read by a batch, if it was begun. */
  def offsets(batch: Long): Option[LoggedBatch] = offsetLog.get(batch).map(new LoggedBatch(_))

  /** Notes that a batch is begun. */
  def begin(batch: Long, offsets: LoggedBatch): Unit = {
    offsetLog.add(batch, offsets.logged)
    ()
  }

  /** The watermark, in ms, that a batch has left to the next one, if it is done. */
  def watermarkAfter(batch: Long): Option[Long] =
    new CommitLog(session, new Path(checkpoint, "commits").toString)
      .get(batch)
      .map(_.nextBatchWatermarkMs)

  private def offsetLog: OffsetSeqLog =
    new OffsetSeqLog(session, new Path(checkpoint, "offsets").toString)
}

object StreamLogs {

  /** Reads the file that says which query a checkpoint is of, and fails if it can't be read. */
  def checkIdentity(file: Path, hadoopConf: Configuration): Unit = {
    StreamMetadata.read(file, hadoopConf)
    ()
  }

  /** Makes a checkpoint that of a new query. */
  def writeIdentity(file: Path, hadoopConf: Configuration): Unit =
    StreamMetadata.write(StreamMetadata(UUID.randomUUID.toString), file, hadoopConf)
}

/** What the log of offsets says of one batch. */
final class LoggedBatch private[compat] (private[compat] val logged: OffsetSeqBase) {

  /** The settings that Spark keeps for the query's life. */
  def settings: Map[String, String] =
    logged.metadataOpt.fold(Map.empty[String, String])(_.conf)

  /** When the batch was begun, in ms, if that is known. */
  def timestamp: Option[Long] = logged.metadataOpt.map(_.batchTimestampMs)

  /** Up to where each source is read, as it puts it, in their order; none where they have names. */
  def inOrder: Option[Seq[Option[String]]] = logged match {
    case several: OffsetSeq => Some(several.offsets.map(_.map(_.json)))
    case _ => None
  }

  /** The same for the sources that have something, each with the name of its folder. */
  def bySource: Seq[(String, String)] = {
    val offsets = logged match {
      case several: OffsetSeq =>
        several.offsets.zipWithIndex.map { case (offset, place) => place.toString -> offset }
      case named: OffsetMap => named.offsetsMap.toSeq
      case _ => Nil
    }
    offsets.collect { case (source, Some(offset)) => source -> offset.json }
  }

  /** The same offsets for a batch at another time, if it can be given one. */
  def at(timestamp: Long, watermark: Long): Option[LoggedBatch] = (logged match {
    case several: OffsetSeq =>
      several.metadataOpt.map { metadata =>
        val timed = metadata.copy(batchWatermarkMs = watermark, batchTimestampMs = timestamp)
        several.copy(metadataOpt = Some(timed))
      }
    case named: OffsetMap =>
      val timed =
        named.metadata.copy(batchWatermarkMs = watermark, batchTimestampMs = timestamp)
      Some(named.copy(metadata = timed))
    case _ => None
  }).map(new LoggedBatch(_))
}
