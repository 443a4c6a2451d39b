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
  CommitLog,
  CommitMetadataBase,
  OffsetMap,
  OffsetSeq,
  OffsetSeqBase,
  OffsetSeqMetadataBase
}
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress
import org.apache.spark.util.TaskInterruptListener

/** The log of batches that are done. */
private[compat] object CommitLogs {

  /**
   * Opens one.
   *
   * @param like
   *   a log of the form in which this one is written; here entries have their form by themselves
   */
  def open(session: SparkSession, folder: Path, like: Path): CommitLog =
    new CommitLog(session, folder.toString)

  /** An entry that says of other files that they count. */
  def withStateIds(
      done: CommitMetadataBase,
      ids: Map[Long, Array[Array[String]]]): CommitMetadataBase =
    done.withStateUniqueIds(Some(ids))
}

/** What the log of offsets says of a batch, in the forms of this version: sources have places or names. */
private[compat] object LoggedOffsets {
  type Entry = OffsetSeqBase
  type Metadata = OffsetSeqMetadataBase

  def metadata(entry: Entry): Option[Metadata] = entry.metadataOpt

  /** The offsets of sources that have places, in their order. */
  def inOrder(entry: Entry): Option[Seq[Option[Offset]]] = entry match {
    case several: OffsetSeq => Some(several.offsets)
    case _ => None
  }

  /** The offsets of sources that have names. */
  def byName(entry: Entry): Map[String, Option[Offset]] = entry match {
    case named: OffsetMap => named.offsetsMap
    case _ => Map.empty
  }

  /** An entry with other offsets of sources that have places. */
  def withOffsets(entry: Entry, offsets: Seq[Option[Offset]]): Option[Entry] = entry match {
    case several: OffsetSeq => Some(several.copy(offsets = offsets))
    case _ => None
  }

  /** An entry with another time and other settings, if it has any. */
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

/** What sources have to give, beyond what a batch reads. */
private[compat] object LatestOffsets {

  /** Lets them find out, where they can't do without. */
  def find(offsets: StreamProgress): Unit = ()
}

/** Finds what is read as a stream, within the node that gives the source a name. */
object NamedStream {
  def unapply(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case NamedStreamingRelation(stream, _) => Some(stream)
    case _ => None
  }
}

/** Tells that a task is interrupted. */
private[compat] object TaskInterrupts {
  def listen(task: TaskContext)(onInterrupt: => Unit): Unit = {
    task.addTaskInterruptListener(new TaskInterruptListener {
      override def onTaskInterrupted(context: TaskContext, reason: String): Unit = onInterrupt
    })
    ()
  }
}
