// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.compat.StreamLogs
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/** BatchLogs: the started and the committed batches of a query, listed once, at the first look at either. */
class BatchLogs(session: SparkSession, checkpoint: Path) {

  private val logs = new StreamLogs(session, checkpoint)
  private val files: FileSystem = checkpoint.getFileSystem(session.sessionState.newHadoopConf())

  /** The batches with offsets in the log. */
  lazy val begun: Set[Long] = batches("offsets")

  /** The batches in the commit log. */
  lazy val done: Set[Long] = batches("commits")

  def lastBegun: Option[Long] = begun.maxOption

  /** The last batch with rows in the target. */
  def lastDone: Option[Long] = done.maxOption.orElse(Option.when(isWithoutState)(0L))

  /**
   * Whether the target has the rows of the first batch, without the batch's state. When the query starts, Spark
   * runs the batch again for the state, and the sink leaves the target's rows unchanged.
   */
  def isWithoutState: Boolean =
    files.exists(rowsWritten) || files.exists(rowsOnly) && done.isEmpty

  /** Marks the running first batch as [[isWithoutState without state]], once the rows are in the target. */
  def markWithoutState(): Unit = files.create(rowsWritten).close()

  /** Removes the commit of a marked batch, so the query runs the batch again. Repeatable after a crash. */
  def uncommitFirstBatch(): Unit = if (files.exists(rowsWritten)) {
    files.delete(new Path(checkpoint, "commits"), true)
    files.create(rowsOnly).close()
    files.delete(rowsWritten, false)
    ()
  }

  private def rowsWritten: Path = new Path(checkpoint, "rows-written")
  private def rowsOnly: Path = new Path(checkpoint, "rows-only")

  /** The settings recorded by Spark for the lifetime of the query; empty before the first batch. */
  def settings: Map[String, String] =
    lastBegun.flatMap(logs.offsets).fold(Map.empty[String, String])(_.settings)

  /** Returns the latest start time of the batches up to `batch`, in ms; empty if unknown. */
  def timeOf(batch: Long): Option[Long] =
    begun.filter(_ <= batch).flatMap(logs.offsets(_).flatMap(_.timestamp)).maxOption

  /** The end offset of each source in the last committed batch, in the source's format. */
  def lastOffsets: Seq[String] = lastRead.map(_._2)

  /** The offsets of [[lastOffsets]], each with the source's folder in the checkpoint. */
  def lastRead: Seq[(Path, String)] = lastDone.toSeq.flatMap(readBy)

  /** Returns the end offsets of a batch, each with the source's folder in the checkpoint. */
  def readBy(batch: Long): Seq[(Path, String)] =
    logs.offsets(batch).toSeq.flatMap(_.bySource).map { case (source, offset) =>
      new Path(new Path(checkpoint, "sources"), source) -> offset
    }

  /**
   * Records the start of a batch at `time` without new data, if the previous batch is committed. The next start of
   * the query runs the batch. The checkpoint must not be in use meanwhile.
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
 * CheckBatchLogs: rejects the restart of a query if a log file of the checkpoint is missing or unreadable.
 *
 * Spark itself would fail with a plain parser error. Without offsets, Spark would run batches again over
 * different rows, and only a sink with a record of the batches could notice.
 */
class CheckBatchLogs(session: SparkSession, checkpoint: Path, batches: BatchLogs) {
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val logs = new StreamLogs(session, checkpoint)

  def apply(): Unit = {
    // the order matters: another driver may start and commit a batch meanwhile
    val done = batches.done
    val begun = batches.begun
    if (begun.nonEmpty || done.nonEmpty) {
      NamingFile(new Path(checkpoint, "metadata"))(StreamLogs.checkIdentity(_, hadoopConf))
      // a run starts with the last batch in the log, at the end offsets of the previous batch
      val last = begun.maxOption.getOrElse(-1L)
      done.filter(batch => batch >= last - 1 && !begun(batch)).maxOption.foreach { batch =>
        throw runtime(
          "CHANGELOG_CHECKPOINT_LOG_INCOMPLETE",
          "file" -> file("offsets", batch).toString,
          "evidence" -> s"the batch is done according to ${file("commits", batch)}")
      }
      Seq(last - 1, last).filter(begun).foreach(readOffsets)
      done.maxOption.foreach(readCommit)
    }
  }

  private def readOffsets(batch: Long): Unit =
    NamingFile(file("offsets", batch)) { _ =>
      val logged =
        logs.offsets(batch).getOrElse(throw new IllegalStateException("the file is missing"))
      logged.inOrder.foreach { offsets =>
        require(offsets.nonEmpty, "the batch has no offsets")
        offsets.flatten.foreach(NamingFile.checkJson)
      }
    }

  private def readCommit(batch: Long): Unit =
    NamingFile(file("commits", batch)) { _ =>
      logs.watermarkAfter(batch)
      ()
    }

  private def file(log: String, batch: Long): Path =
    new Path(new Path(checkpoint, log), batch.toString)
}
