// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.util.concurrent.TimeUnit

import scala.util.Using

import org.apache.hadoop.fs.Path

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, ReadLimit, SupportsAdmissionControl}
import org.apache.spark.sql.execution.streaming.checkpointing.{CommitLog, CommitMetadata, OffsetSeq, OffsetSeqMetadata}
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.ThreadUtils

/** The log of batches that are done. */
private[compat] object CommitLogs {

  /**
   * Opens one.
   *
   * @param like
   *   a log of the form in which this one is read and written; here a session tells the form of all
   */
  def open(session: SparkSession, folder: Path, like: Path): CommitLog = {
    val own = session.cloneSession()
    versionOf(session, like).foreach(
      own.conf.set(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key, _))
    new CommitLog(own, folder.toString)
  }

  /** The first line of each entry is `v` and the form. */
  private def versionOf(session: SparkSession, log: Path): Option[String] = {
    val files = log.getFileSystem(session.sessionState.newHadoopConf())
    val entries = if (files.exists(log)) files.listStatus(log).toSeq else Nil
    entries.map(_.getPath).find(_.getName.forall(_.isDigit)).map { entry =>
      Using.resource(files.open(entry))(in => new String(in.readNBytes(2)).drop(1))
    }
  }

  /** An entry that says of other files that they count. */
  def withStateIds(
      done: CommitMetadata,
      ids: Map[Long, Array[Array[String]]]): CommitMetadata =
    done.copy(stateUniqueIds = Some(ids))
}

/** What the log of offsets says of a batch, in the one form of this version: sources have places. */
private[compat] object LoggedOffsets {
  type Entry = OffsetSeq
  type Metadata = OffsetSeqMetadata

  def metadata(entry: Entry): Option[Metadata] = entry.metadata

  /** The offsets of sources that have places, in their order. */
  def inOrder(entry: Entry): Option[Seq[Option[Offset]]] = Some(entry.offsets)

  /** The offsets of sources that have names. */
  def byName(entry: Entry): Map[String, Option[Offset]] = Map.empty

  /** An entry with other offsets of sources that have places. */
  def withOffsets(entry: Entry, offsets: Seq[Option[Offset]]): Option[Entry] =
    Some(entry.copy(offsets = offsets))

  /** An entry with another time and other settings, if it has any. */
  def withMetadata(
      entry: Entry,
      watermark: Long,
      timestamp: Long,
      settings: Map[String, String]): Option[Entry] =
    entry.metadata.map { metadata =>
      entry.copy(metadata = Some(metadata.copy(watermark, timestamp, settings)))
    }
}

/** What sources have to give, beyond what a batch reads. */
private[compat] object LatestOffsets {

  /**
   * Lets them find out. A batch whose offsets were written before a run began is read without that, and
   * Kafka's source, which tells in its metrics how far behind it is, fails after such a batch.
   */
  def find(offsets: StreamProgress): Unit = offsets.foreach {
    case (source: MicroBatchStream with SupportsAdmissionControl, offset) if isKafka(source) =>
      source.latestOffset(source.deserializeOffset(offset.json), ReadLimit.allAvailable())
    case _ =>
  }

  private def isKafka(source: MicroBatchStream): Boolean =
    source.getClass.getName == "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"
}

/** Finds nothing: in this version sources have no names. */
object NamedStream {
  def unapply(plan: LogicalPlan): Option[LogicalPlan] = None
}

/** Tells that a task is interrupted. This version does not say so itself: it is looked at every second. */
private[compat] object TaskInterrupts {
  def listen(task: TaskContext)(onInterrupt: => Unit): Unit = {
    val looking = ThreadUtils.newDaemonSingleThreadScheduledExecutor("changelog-task-interrupts")
    looking.scheduleWithFixedDelay(
      () =>
        if (task.isInterrupted()) {
          looking.shutdown()
          onInterrupt
        },
      1,
      1,
      TimeUnit.SECONDS)
    task.addTaskCompletionListener[Unit] { _ =>
      looking.shutdownNow()
      ()
    }
    ()
  }
}
