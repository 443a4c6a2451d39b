// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.{
  CheckpointFileManager,
  CommitLog,
  OffsetSeq,
  OffsetSeqBase,
  OffsetSeqLog
}
import org.apache.spark.sql.execution.streaming.runtime.StreamMetadata

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
  private val files = CheckpointFileManager.create(checkpoint, hadoopConf)

  def apply(): Unit = {
    // in this order: another driver may begin a batch meanwhile, and end it
    val done = batches("commits")
    val begun = batches("offsets")
    if (begun.nonEmpty || done.nonEmpty) {
      ReadableFile(new Path(checkpoint, "metadata"))(StreamMetadata.read(_, hadoopConf))
      // a run begins with the last batch in the log, and where the one before it has ended
      val last = begun.maxOption.getOrElse(-1L)
      done.filter(batch => batch >= last - 1 && !begun(batch)).maxOption.foreach { batch =>
        throw CheckpointFileErrors.logIncomplete(
          file("offsets", batch).toString,
          s"that batch is done, as ${file("commits", batch)} says")
      }
      val offsets = Seq(last - 1, last).filter(begun).map(readOffsets)
      done.maxOption.foreach(readCommit)
      offsets.last match {
        case several: OffsetSeq => new CheckSourceLogs(session, checkpoint, files)(several)
        case _ =>
      }
    }
  }

  private def readOffsets(batch: Long): OffsetSeqBase =
    ReadableFile(file("offsets", batch)) { file =>
      val log = new OffsetSeqLog(session, file.getParent.toString)
      val offsets = log.get(batch).getOrElse(throw new IllegalStateException("it has gone"))
      offsets match {
        case several: OffsetSeq =>
          require(several.offsets.nonEmpty, "it has no offsets")
          several.offsets.flatten.map(_.json).foreach(ReadableFile.checkJson)
        case _ =>
      }
      offsets
    }

  private def readCommit(batch: Long): Unit =
    ReadableFile(file("commits", batch)) { file =>
      new CommitLog(session, file.getParent.toString).get(batch)
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
