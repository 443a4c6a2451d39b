// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import org.apache.spark.sql.changelog.compat.StreamLogs
import org.apache.spark.sql.changelog.errors.CheckpointFileErrors

/** Which batches of a query were begun, and which are done, as its checkpoint says. */
class BatchLogs(session: SparkSession, checkpoint: Path) {

  private val logs = new StreamLogs(session, checkpoint)
  private val files: FileSystem = checkpoint.getFileSystem(session.sessionState.newHadoopConf())

  /** Batches whose offsets are still in the log. */
  def begun: Set[Long] = batches("offsets")

  /** Batches with an entry in the commit log. */
  def done: Set[Long] = batches("commits")

  def lastBegun: Option[Long] = begun.maxOption

  /** The last batch whose rows are in the target. */
  def lastDone: Option[Long] = done.maxOption.orElse(Option.when(isWithoutState)(0L))

  /**
   * Whether the target has the rows of the first batch, but its state has not been computed. A query that
   * starts runs the batch, and its sink leaves the rows as they are.
   */
  def isWithoutState: Boolean = files.exists(rowsOnly) && done.isEmpty

  /** Makes the first batch, which is done, one [[isWithoutState without state]]. */
  def leaveOutState(): Unit = {
    files.create(rowsOnly).close()
    files.delete(new Path(checkpoint, "commits"), true)
    ()
  }

  private def rowsOnly: Path = new Path(checkpoint, "rows-only")

  /** The settings that Spark keeps for the query's life; none before it has begun. */
  def settings: Map[String, String] =
    lastBegun.flatMap(logs.offsets).fold(Map.empty[String, String])(_.settings)

  /** The latest time at which a batch up to `batch` was begun, in ms; none if that isn't known. */
  def timeOf(batch: Long): Option[Long] =
    logs.begun.filter(_ <= batch).flatMap(logs.offsets(_).flatMap(_.timestamp)).maxOption

  /** Up to where the last batch that is done has read each source, as the sources have put it. */
  def lastOffsets: Seq[String] = lastRead.map(_._2)

  /** The same, each with the folder in which its source keeps what it needs. */
  def lastRead: Seq[(Path, String)] = lastDone.toSeq.flatMap(readBy)

  /** The same of one batch. */
  def readBy(batch: Long): Seq[(Path, String)] =
    logs.offsets(batch).toSeq.flatMap(_.bySource).map { case (source, offset) =>
      new Path(new Path(checkpoint, "sources"), source) -> offset
    }

  /**
   * Notes that a batch was begun at `time` to which nothing new belongs, if the one before is done. A
   * query that starts then runs it. No other may run meanwhile.
   */
  def begin(time: Long): Unit = lastDone.filter(lastBegun.contains(_)).foreach { done =>
    for {
      watermark <- logs.watermarkAfter(done)
      offsets <- logs.offsets(done)
      begun <- offsets.at(time, watermark)
    } logs.begin(done + 1, begun)
  }

  private def batches(log: String): Set[Long] = {
    val folder = new Path(checkpoint, log)
    if (!files.exists(folder)) Set.empty
    else files.listStatus(folder).flatMap(_.getPath.getName.toLongOption).toSet
  }
}

/**
 * Refuses to begin a query again whose checkpoint lacks a file that tells of its batches, or has one
 * that can't be read.
 *
 * Spark would give the error of whatever reads such a file. Where offsets are missing it would run
 * batches anew over other rows, and notice only when a sink has them.
 */
class CheckBatchLogs(session: SparkSession, checkpoint: Path) {
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val logs = new StreamLogs(session, checkpoint)
  private val files = CheckpointFileManager.create(checkpoint, hadoopConf)

  def apply(): Unit = {
    // in this order: another driver may begin a batch meanwhile, and end it
    val done = batches("commits")
    val begun = batches("offsets")
    if (begun.nonEmpty || done.nonEmpty) {
      ReadableFile(new Path(checkpoint, "metadata"))(StreamLogs.checkIdentity(_, hadoopConf))
      // a run begins with the last batch in the log, and where the one before it has ended
      val last = begun.maxOption.getOrElse(-1L)
      done.filter(batch => batch >= last - 1 && !begun(batch)).maxOption.foreach { batch =>
        throw CheckpointFileErrors.logIncomplete(
          file("offsets", batch).toString,
          s"that batch is done, as ${file("commits", batch)} says")
      }
      Seq(last - 1, last).filter(begun).foreach(readOffsets)
      done.maxOption.foreach(readCommit)
    }
  }

  private def readOffsets(batch: Long): Unit =
    ReadableFile(file("offsets", batch)) { _ =>
      val logged = logs.offsets(batch).getOrElse(throw new IllegalStateException("it has gone"))
      logged.inOrder.foreach { offsets =>
        require(offsets.nonEmpty, "it has no offsets")
        offsets.flatten.foreach(ReadableFile.checkJson)
      }
    }

  private def readCommit(batch: Long): Unit =
    ReadableFile(file("commits", batch)) { _ =>
      logs.watermarkAfter(batch)
      ()
    }

  private def file(log: String, batch: Long): Path =
    new Path(new Path(checkpoint, log), batch.toString)

  private def batches(log: String): Set[Long] = {
    val folder = new Path(checkpoint, log)
    if (!files.exists(folder)) Set.empty
    else files.list(folder).flatMap(_.getPath.getName.toLongOption).toSet
  }
}
