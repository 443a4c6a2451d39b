// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.hadoop.fs.Path

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.analysis.NamedStreamingRelation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.streaming.Offset
import org.apache.spark.sql.execution.streaming.checkpointing.{
  CommitLog, CommitMetadataBase, OffsetMap, OffsetSeq, OffsetSeqBase, OffsetSeqMetadataBase
}
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress
import org.apache.spark.util.TaskInterruptListener

/** Opens commit logs. */
private[compat] object CommitLogs {

  /**
   * Opens a commit log.
   *
   * @param like
   *   a log with the format to write; since Spark 4.2, each entry has its own format
   */
  def open(session: SparkSession, folder: Path, like: Path): CommitLog =
    new CommitLog(session, folder.toString)

  /** Replaces the ids of committed state files in an entry. */
  def withStateIds(
      done: CommitMetadataBase,
      ids: Map[Long, Array[Array[String]]]): CommitMetadataBase =
    done.withStateUniqueIds(Some(ids))
}

/** Reads and writes entries of the offset log, in the formats since Spark 4.2: sources in order, or named. */
private[compat] object LoggedOffsets {
  type Entry = OffsetSeqBase
  type Metadata = OffsetSeqMetadataBase

  def metadata(entry: Entry): Option[Metadata] = entry.metadataOpt

  /** Returns the offsets of unnamed sources, in source order. */
  def inOrder(entry: Entry): Option[Seq[Option[Offset]]] = entry match {
    case several: OffsetSeq => Some(several.offsets)
    case _ => None
  }

  /** Returns the offsets of named sources. */
  def byName(entry: Entry): Map[String, Option[Offset]] = entry match {
    case named: OffsetMap => named.offsetsMap
    case _ => Map.empty
  }

  /** Replaces the offsets of unnamed sources in an entry. */
  def withOffsets(entry: Entry, offsets: Seq[Option[Offset]]): Option[Entry] = entry match {
    case several: OffsetSeq => Some(several.copy(offsets = offsets))
    case _ => None
  }

  /** Replaces the times and settings of an entry, if the entry has metadata. */
  def withMetadata(
      entry: Entry,
      watermark: Long,
      timestamp: Long,
      settings: Map[String, String]): Option[Entry] = entry match {
    case several: OffsetSeq =>
      several.metadataOpt.map { metadata =>
        several.copy(metadataOpt = Some(metadata.copy(watermark, timestamp, settings)))
      }
    case named: OffsetMap =>
      Some(named.copy(metadata = named.metadata.copy(watermark, timestamp, settings)))
    case _ => None
  }
}

/** The latest offsets of sources, beyond the end of a batch. */
private[compat] object LatestOffsets {

  /** Does nothing, because sources need no lookup since Spark 4.2. */
  def find(offsets: StreamProgress): Unit = ()
}

/** Matches a named streaming source and returns the stream below the name. */
object NamedStream {
  def unapply(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case NamedStreamingRelation(stream, _) => Some(stream)
    case _ => None
  }
}

/** Notifies of a task's interruption. */
private[compat] object TaskInterrupts {
  def listen(task: TaskContext)(onInterrupt: => Unit): Unit = {
    task.addTaskInterruptListener(new TaskInterruptListener {
      override def onTaskInterrupted(context: TaskContext, reason: String): Unit = onInterrupt
    })
    ()
  }
}
