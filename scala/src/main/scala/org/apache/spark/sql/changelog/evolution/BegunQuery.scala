// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.evolution

import java.util.UUID

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.streaming.{Offset => OffsetV2}
import org.apache.spark.sql.execution.streaming.checkpointing._
import org.apache.spark.sql.execution.streaming.runtime.StreamMetadata

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.errors.EvolutionErrors
import org.apache.spark.sql.changelog.identity.{QueryRecord, QueryRecordFile}

/** A query that has run, and is stopped between two batches, as its checkpoint tells. */
private[evolution] class BegunQuery(session: SparkSession, val checkpoint: Path) {
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val logs = new BatchLogs(session, checkpoint)

  private def refuse(reason: String): Nothing =
    throw EvolutionErrors.notPossible(checkpoint.toString, reason)

  /** The last batch, which is done. */
  val batch: Long = {
    val done = logs.lastDone.getOrElse(refuse("no batch of it is done"))
    logs.lastBegun.filter(_ != done).foreach { begun =>
      refuse(
        s"batch $begun was begun and is not done; start the query once more as it was, so that it ends")
    }
    StreamMetadata.read(new Path(checkpoint, "metadata"), hadoopConf).foreach { metadata =>
      if (session.sharedState.activeStreamingQueries.containsKey(UUID.fromString(metadata.id)))
        refuse("the query it is of is running; stop that first")
    }
    done
  }

  val record: QueryRecord =
    new QueryRecordFile(checkpoint, hadoopConf)
      .read()
      .filter { record =>
        record.readings.nonEmpty && record.settings.contains(ChangelogConf.STATE_PARTITIONS.key)
      }
      .getOrElse(refuse(
        "an earlier version began it, which did not write down what it is; start it once as it was"))

  /** How far its streams have been read, in the order of [[QueryRecord.readings]]. */
  val offsets: OffsetSeq =
    new OffsetSeqLog(session, new Path(checkpoint, "offsets").toString).get(batch) match {
      case Some(several: OffsetSeq) => several
      case _ => refuse("its sources have names of their own")
    }

  /** How far one of [[QueryRecord.sources]] has been read. */
  def offsetOf(source: Int): Option[OffsetV2] = offsets.offsets(record.readings.indexOf(source))

  val commit: CommitMetadataBase = {
    val commit = new CommitLog(session, new Path(checkpoint, "commits").toString).get(batch).get
    if (commit.stateUniqueIds.exists(_.nonEmpty)) {
      refuse("each attempt of a task has state files of its own (checkpoint format version 2)")
    }
    commit
  }
}
