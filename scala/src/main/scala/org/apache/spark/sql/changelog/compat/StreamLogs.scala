// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{DataSource, FileFormat}
import org.apache.spark.sql.execution.streaming.checkpointing.{
  CommitLog, OffsetSeqLog, OffsetSeqMetadata
}
import org.apache.spark.sql.execution.streaming.runtime.{
  FileStreamSourceLog, StreamMetadata, StreamingRelation
}
import org.apache.spark.sql.internal.SQLConf

/** The entries of the offset log and the commit log in a query's checkpoint. */
final class StreamLogs(session: SparkSession, checkpoint: Path) {

  /** Returns the offsets of a batch, if the batch was begun. */
  def offsets(batch: Long): Option[LoggedBatch] = offsetLog.get(batch).map(new LoggedBatch(_))

  /** Adds a batch to the offset log. */
  def begin(batch: Long, offsets: LoggedBatch): Unit = {
    offsetLog.add(batch, offsets.logged)
    ()
  }

  /** Returns the watermark, in ms, that a committed batch leaves to the next. */
  def watermarkAfter(batch: Long): Option[Long] =
    commitLog.get(batch).map(_.nextBatchWatermarkMs)

  /**
   * Returns the ids of the committed state files of a batch, for checkpoints with separate files per task
   * attempt: by operator, partition and store.
   */
  def stateIds(batch: Long): Option[Map[Long, Seq[Seq[String]]]] =
    commitLog.get(batch).flatMap(_.stateUniqueIds).filter(_.nonEmpty).map { ids =>
      ids.map { case (operator, ofOperator) => operator -> ofOperator.map(_.toSeq).toSeq }
    }

  /**
   * Adds a batch to the commit log, with the entry of other logs.
   *
   * @param stateIds
   *   the ids of the committed state files, if they differ
   */
  def endAs(
      batch: Long,
      others: StreamLogs,
      stateIds: Option[Map[Long, Seq[Seq[String]]]] = None): Unit =
    others.commitLog.get(batch).foreach { done =>
      val ids = stateIds.map(_.map { case (operator, ofOperator) =>
        operator -> ofOperator.map(_.toArray).toArray
      })
      commitLogLike(others).add(batch, ids.fold(done)(CommitLogs.withStateIds(done, _)))
    }

  /** The query id of the checkpoint in sinks, if the query was ever started. */
  def queryId: Option[String] = StreamMetadata
    .read(new Path(checkpoint, "metadata"), session.sessionState.newHadoopConf())
    .map(_.id)

  /** Whether the query runs in this application. */
  def isActive: Boolean = queryId.exists { id =>
    session.sharedState.activeStreamingQueries.containsKey(UUID.fromString(id))
  }

  private def commitLog: CommitLog = commitLogLike(this)

  /** Returns the commit log, in the format of the other log. */
  private def commitLogLike(other: StreamLogs): CommitLog =
    CommitLogs.open(session, commits, like = other.commits)

  private def commits: Path = new Path(checkpoint, "commits")

  private def offsetLog: OffsetSeqLog =
    new OffsetSeqLog(session, new Path(checkpoint, "offsets").toString)
}

object StreamLogs {

  /** Reads the file with the query id of a checkpoint, and fails if the file cannot be read. */
  def checkIdentity(file: Path, hadoopConf: Configuration): Unit = {
    StreamMetadata.read(file, hadoopConf)
    ()
  }

  /** Writes a new query id into a checkpoint. */
  def writeIdentity(file: Path, hadoopConf: Configuration): Unit =
    StreamMetadata.write(StreamMetadata(UUID.randomUUID.toString), file, hadoopConf)
}

/** An entry of the offset log. */
final class LoggedBatch private[compat] (private[compat] val logged: LoggedOffsets.Entry) {
  private val metadata = LoggedOffsets.metadata(logged)

  /** The settings that Spark records for the lifetime of the query. */
  def settings: Map[String, String] = metadata.fold(Map.empty[String, String])(_.conf)

  /** The start of the batch, in ms, if known. */
  def timestamp: Option[Long] = metadata.map(_.batchTimestampMs)

  /** The end offset of each source in source order, in the source's own format; empty for named sources. */
  def inOrder: Option[Seq[Option[String]]] =
    LoggedOffsets.inOrder(logged).map(_.map(_.map(_.json)))

  /** The end offsets of sources with data, each with the name of the source's folder. */
  def bySource: Seq[(String, String)] = {
    val places = LoggedOffsets.inOrder(logged).getOrElse(Nil).zipWithIndex.map {
      case (offset, place) => place.toString -> offset
    }
    (places ++ LoggedOffsets.byName(logged)).collect { case (source, Some(offset)) =>
      source -> offset.json
    }
  }

  /**
   * Returns an entry with the same times and settings, for a query with other sources. Each source has the
   * offset of the source at an index here, or has not been read. Empty for named sources.
   */
  def of(places: Seq[Option[Int]]): Option[LoggedBatch] =
    LoggedOffsets
      .inOrder(logged)
      .map(offsets => places.map(_.flatMap(offsets(_))))
      .flatMap(LoggedOffsets.withOffsets(logged, _))
      .map(new LoggedBatch(_))

  /** Returns the entry for a query with another number of partitions, if possible. */
  def inPartitions(numPartitions: Int): Option[LoggedBatch] = {
    val changed = SQLConf.SHUFFLE_PARTITIONS.key -> numPartitions.toString
    metadata.flatMap(now => next(now.batchWatermarkMs, now.batchTimestampMs, settings + changed))
  }

  /** Applies the settings recorded for the query to `conf`. */
  def use(conf: SQLConf): Unit = metadata.foreach(OffsetSeqMetadata.setSessionConf(_, conf))

  /** Returns the entry for a batch at another time, if possible. */
  def at(timestamp: Long, watermark: Long): Option[LoggedBatch] =
    next(watermark, timestamp, settings)

  private def next(
      watermark: Long,
      timestamp: Long,
      settings: Map[String, String]): Option[LoggedBatch] =
    LoggedOffsets.withMetadata(logged, watermark, timestamp, settings).map(new LoggedBatch(_))
}

/** Batches of DSv1 sources. */
object SourceBatches {

  /** Returns the DSv1 source of a stream, if any. */
  def sourceOf(stream: LogicalPlan): Option[DataSource] = stream match {
    case relation: StreamingRelation => Some(relation.dataSource)
    case _ => None
  }

  /** Returns whether a source reads files. Such a source emits each row of its files. */
  def readsFiles(source: DataSource): Boolean =
    classOf[FileFormat].isAssignableFrom(source.providingClass)

  /**
   * Returns the files that a file source has read, from the source's log.
   *
   * @param folder
   *   the source's folder in a checkpoint
   */
  def filesGiven(session: SparkSession, folder: Path): Seq[Path] =
    new FileStreamSourceLog(FileStreamSourceLog.VERSION, session, folder.toString)
      .allFiles()
      .map(_.sparkPath.toPath)
      .toSeq
}
