// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.{
  CommitLog,
  OffsetMap,
  OffsetSeq,
  OffsetSeqBase,
  OffsetSeqLog
}

/** Which batches of a query were begun, and which are done, as its checkpoint says. */
class BatchLogs(session: SparkSession, checkpoint: Path) {
  private val files: FileSystem = checkpoint.getFileSystem(session.sessionState.newHadoopConf())

  def lastBegun: Option[Long] = last("offsets")

  def lastDone: Option[Long] = last("commits")

  /** The settings that Spark keeps for the query's life; none before it has begun. */
  def settings: Map[String, String] =
    lastBegun
      .flatMap(offsetLog.get(_).flatMap(_.metadataOpt))
      .fold(Map.empty[String, String])(_.conf)

  /** The latest time at which a batch up to `batch` was begun, in ms; none if that isn't known. */
  def timeOf(batch: Long): Option[Long] = {
    val log = offsetLog
    log.listBatchesOnDisk
      .filter(_ <= batch)
      .flatMap(log.get(_).flatMap(_.metadataOpt).map(_.batchTimestampMs))
      .maxOption
  }

  /** Up to where the last batch that is done has read each source, as the sources have put it. */
  def lastOffsets: Seq[String] = lastRead.map(_._2)

  /** The same, each with the folder in which its source keeps what it needs. */
  def lastRead: Seq[(Path, String)] = {
    val offsets = lastDone.flatMap(offsetLog.get(_)) match {
      case Some(several: OffsetSeq) =>
        several.offsets.zipWithIndex.map { case (offset, place) => place.toString -> offset }
      case Some(named: OffsetMap) => named.offsetsMap.toSeq
      case _ => Nil
    }
    offsets.collect { case (source, Some(offset)) =>
      new Path(new Path(checkpoint, "sources"), source) -> offset.json
    }
  }

  /**
   * Notes that a batch was begun at `time` to which nothing new belongs, if the one before is done. A
   * query that starts then runs it. No other may run meanwhile.
   */
  def begin(time: Long): Unit = lastDone.filter(lastBegun.contains(_)).foreach { done =>
    val watermark =
      new CommitLog(session, new Path(checkpoint, "commits").toString)
        .get(done)
        .map(_.nextBatchWatermarkMs)
    for {
      watermark <- watermark
      offsets <- offsetLog.get(done)
      begun <- at(offsets, time, watermark)
    } offsetLog.add(done + 1, begun)
  }

  private def at(offsets: OffsetSeqBase, time: Long, watermark: Long): Option[OffsetSeqBase] =
    offsets match {
      case several: OffsetSeq =>
        several.metadataOpt.map { metadata =>
          val timed = metadata.copy(batchWatermarkMs = watermark, batchTimestampMs = time)
          several.copy(metadataOpt = Some(timed))
        }
      case named: OffsetMap =>
        val timed = named.metadata.copy(batchWatermarkMs = watermark, batchTimestampMs = time)
        Some(named.copy(metadata = timed))
      case _ => None
    }

  private def offsetLog: OffsetSeqLog =
    new OffsetSeqLog(session, new Path(checkpoint, "offsets").toString)

  private def last(log: String): Option[Long] = {
    val folder = new Path(checkpoint, log)
    if (!files.exists(folder)) None
    else files.listStatus(folder).flatMap(_.getPath.getName.toLongOption).maxOption
  }
}
