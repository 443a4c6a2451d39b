// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import org.apache.spark.sql.changelog.compat.StreamLogs
import org.apache.spark.sql.changelog.errors.CheckpointFileErrors

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
