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
  CommitLog,
  OffsetSeqLog,
  OffsetSeqMetadata
}
import org.apache.spark.sql.execution.streaming.runtime.{
  FileStreamSourceLog,
  StreamMetadata,
  StreamingRelation
}
import org.apache.spark.sql.internal.SQLConf

/** The logs of batches in the checkpoint of a query, entry by entry. */
final class StreamLogs(session: SparkSession, checkpoint: Path) {

  /** The batches in the log of those that were begun. */
  def begun: Seq[Long] = offsetLog.listBatchesOnDisk.toSeq

  /** The offsets of a batch, if it was begun. */
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
      commitLogLike(others).add(batch, ids.fold(done)(CommitLogs.withStateIds(done, _)))
    }

  /** The query that the checkpoint is of, as sinks know it, if it was ever started. */
  def queryId: Option[String] = StreamMetadata
    .read(new Path(checkpoint, "metadata"), session.sessionState.newHadoopConf())
    .map(_.id)

  /** Whether the query runs in this application. */
  def isActive: Boolean = queryId.exists { id =>
    session.sharedState.activeStreamingQueries.containsKey(UUID.fromString(id))
  }

  private def commitLog: CommitLog = commitLogLike(this)

  /** The log of batches that are done, in the form in which the other one is. */
  private def commitLogLike(other: StreamLogs): CommitLog =
    CommitLogs.open(session, commits, like = other.commits)

  private def commits: Path = new Path(checkpoint, "commits")

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

/** One entry of the offset log. */
final class LoggedBatch private[compat] (private[compat] val logged: LoggedOffsets.Entry) {
  private val metadata = LoggedOffsets.metadata(logged)

  /** The settings that Spark keeps for the query's life. */
  def settings: Map[String, String] = metadata.fold(Map.empty[String, String])(_.conf)

  /** When the batch was begun, in ms, if that is known. */
  def timestamp: Option[Long] = metadata.map(_.batchTimestampMs)

  /** Up to where each source is read, as it puts it, in their order; none where they have names. */
  def inOrder: Option[Seq[Option[String]]] =
    LoggedOffsets.inOrder(logged).map(_.map(_.map(_.json)))

  /** The same for the sources that have something, each with the name of its folder. */
  def bySource: Seq[(String, String)] = {
    val places = LoggedOffsets.inOrder(logged).getOrElse(Nil).zipWithIndex.map {
      case (offset, place) => place.toString -> offset
    }
    (places ++ LoggedOffsets.byName(logged)).collect { case (source, Some(offset)) =>
      source -> offset.json
    }
  }

  /**
   * The same time and settings for a query with other sources, each of which stands where the one of a
   * place here does, or has not been read; none where sources have names.
   */
  def of(places: Seq[Option[Int]]): Option[LoggedBatch] =
    LoggedOffsets
      .inOrder(logged)
      .map(offsets => places.map(_.flatMap(offsets(_))))
      .flatMap(LoggedOffsets.withOffsets(logged, _))
      .map(new LoggedBatch(_))

  /** The same for a query with so many partitions, if that can be said. */
  def inPartitions(numPartitions: Int): Option[LoggedBatch] = {
    val changed = SQLConf.SHUFFLE_PARTITIONS.key -> numPartitions.toString
    metadata.flatMap(now => next(now.batchWatermarkMs, now.batchTimestampMs, settings + changed))
  }

  /** Lets `conf` have the settings that Spark keeps for the query's life. */
  def use(conf: SQLConf): Unit = metadata.foreach(OffsetSeqMetadata.setSessionConf(_, conf))

  /** The same offsets for a batch at another time, if it can be given one. */
  def at(timestamp: Long, watermark: Long): Option[LoggedBatch] =
    next(watermark, timestamp, settings)

  private def next(
      watermark: Long,
      timestamp: Long,
      settings: Map[String, String]): Option[LoggedBatch] =
    LoggedOffsets.withMetadata(logged, watermark, timestamp, settings).map(new LoggedBatch(_))
}

/** Plans of batches of DSv1 sources, not executed. */
object SourceBatches {

  /** The DSv1 source of a stream, if it has one. */
  def sourceOf(stream: LogicalPlan): Option[DataSource] = stream match {
    case relation: StreamingRelation => Some(relation.dataSource)
    case _ => None
  }

  /** Whether a source goes through files, all of whose rows are given. */
  def readsFiles(source: DataSource): Boolean =
    classOf[FileFormat].isAssignableFrom(source.providingClass)

  /**
   * The files that such a source has given, as it has noted.
   *
   * @param folder
   *   its own, in a checkpoint
   */
  def filesGiven(session: SparkSession, folder: Path): Seq[Path] =
    new FileStreamSourceLog(FileStreamSourceLog.VERSION, session, folder.toString)
      .allFiles()
      .map(_.sparkPath.toPath)
      .toSeq
}
