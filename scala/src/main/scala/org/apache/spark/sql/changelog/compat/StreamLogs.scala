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
  OffsetSeqLog,
  OffsetSeqMetadata
}
import org.apache.spark.sql.execution.streaming.runtime.StreamMetadata
import org.apache.spark.sql.internal.SQLConf

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
    commitLog.get(batch).map(_.nextBatchWatermarkMs)

  /**
   * Which of its files count, where each attempt of a task leaves some of its own: of each operator, by partition
   * and store.
   */
  def stateIds(batch: Long): Option[Map[Long, Seq[Seq[String]]]] =
    commitLog.get(batch).flatMap(_.stateUniqueIds).filter(_.nonEmpty).map { ids =>
      ids.map { case (operator, ofOperator) => operator -> ofOperator.map(_.toSeq).toSeq }
    }

  /**
   * Notes that a batch is done, as other logs say of it.
   *
   * @param stateIds
   *   which files of it count, where those are others
   */
  def endAs(
      batch: Long,
      others: StreamLogs,
      stateIds: Option[Map[Long, Seq[Seq[String]]]] = None): Unit =
    others.commitLog.get(batch).foreach { done =>
      val ids = stateIds.map(_.map { case (operator, ofOperator) =>
        operator -> ofOperator.map(_.toArray).toArray
      })
      commitLog.add(batch, if (ids.isEmpty) done else done.withStateUniqueIds(ids))
    }

  /** The query that the checkpoint is of, as sinks know it, if it was ever started. */
  def queryId: Option[String] = StreamMetadata
    .read(new Path(checkpoint, "metadata"), session.sessionState.newHadoopConf())
    .map(_.id)

  /** Whether the query runs in this application. */
  def isActive: Boolean = queryId.exists { id =>
    session.sharedState.activeStreamingQueries.containsKey(UUID.fromString(id))
  }

  private def commitLog: CommitLog =
    new CommitLog(session, new Path(checkpoint, "commits").toString)

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

  /**
   * The same time and settings for a query with other sources, each of which stands where the one of a
   * place here does, or has not been read; none where sources have names.
   */
  def of(places: Seq[Option[Int]]): Option[LoggedBatch] = logged match {
    case several: OffsetSeq =>
      val read = places.map(_.flatMap(several.offsets(_)))
      Some(new LoggedBatch(several.copy(offsets = read)))
    case _ => None
  }

  /** The same for a query with so many partitions, if that can be said. */
  def inPartitions(numPartitions: Int): Option[LoggedBatch] = {
    val changed = SQLConf.SHUFFLE_PARTITIONS.key -> numPartitions.toString
    (logged match {
      case several: OffsetSeq =>
        several.metadataOpt.map { metadata =>
          several.copy(metadataOpt = Some(metadata.copy(conf = metadata.conf + changed)))
        }
      case named: OffsetMap =>
        Some(named.copy(metadata = named.metadata.copy(conf = named.metadata.conf + changed)))
      case _ => None
    }).map(new LoggedBatch(_))
  }

  /** Lets `conf` have the settings that Spark keeps for the query's life. */
  def use(conf: SQLConf): Unit =
    logged.metadataOpt.foreach(OffsetSeqMetadata.setSessionConf(_, conf))

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
