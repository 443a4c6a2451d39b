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

/** Opens commit logs. */
private[compat] object CommitLogs {

  /**
   * Opens a commit log.
   *
   * @param like
   *   a log with the format to read and write; in Spark 4.1, a session has a single format for every log
   */
  def open(session: SparkSession, folder: Path, like: Path): CommitLog = {
    val own = session.cloneSession()
    versionOf(session, like).foreach(
      own.conf.set(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key, _))
    new CommitLog(own, folder.toString)
  }

  /** Returns the format of a log. The first line of each entry is `v` and the format. */
  private def versionOf(session: SparkSession, log: Path): Option[String] = {
    val files = log.getFileSystem(session.sessionState.newHadoopConf())
    val entries = if (files.exists(log)) files.listStatus(log).toSeq else Nil
    entries.map(_.getPath).find(_.getName.forall(_.isDigit)).map { entry =>
      Using.resource(files.open(entry))(in => new String(in.readNBytes(2)).drop(1))
    }
  }

  /** Replaces the ids of committed state files in an entry. */
  def withStateIds(
      done: CommitMetadata,
      ids: Map[Long, Array[Array[String]]]): CommitMetadata =
    done.copy(stateUniqueIds = Some(ids))
}

/** Reads and writes entries of the offset log, in the single format of Spark 4.1: sources in order. */
private[compat] object LoggedOffsets {
  type Entry = OffsetSeq
  type Metadata = OffsetSeqMetadata

  def metadata(entry: Entry): Option[Metadata] = entry.metadata

  /** Returns the offsets of unnamed sources, in source order. */
  def inOrder(entry: Entry): Option[Seq[Option[Offset]]] = Some(entry.offsets)

  /** Returns the offsets of named sources. */
  def byName(entry: Entry): Map[String, Option[Offset]] = Map.empty

  /** Replaces the offsets of unnamed sources in an entry. */
  def withOffsets(entry: Entry, offsets: Seq[Option[Offset]]): Option[Entry] =
    Some(entry.copy(offsets = offsets))

  /** Replaces the times and settings of an entry, if the entry has metadata. */
  def withMetadata(
      entry: Entry,
      watermark: Long,
      timestamp: Long,
      settings: Map[String, String]): Option[Entry] =
    entry.metadata.map { metadata =>
      entry.copy(metadata = Some(metadata.copy(watermark, timestamp, settings)))
    }
}

/** The latest offsets of sources, beyond the end of a batch. */
private[compat] object LatestOffsets {

  /**
   * Lets Kafka's source look up its latest offsets. Spark reads a batch from an earlier run without this
   * lookup. Kafka's source then fails, because its metrics report the lag.
   */
  def find(offsets: StreamProgress): Unit = offsets.foreach {
    case (source: MicroBatchStream with SupportsAdmissionControl, offset) if isKafka(source) =>
      source.latestOffset(source.deserializeOffset(offset.json), ReadLimit.allAvailable())
    case _ =>
  }

  private def isKafka(source: MicroBatchStream): Boolean =
    source.getClass.getName == "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"
}

/** Never matches, because sources have no names in Spark 4.1. */
object NamedStream {
  def unapply(plan: LogicalPlan): Option[LogicalPlan] = None
}

/** Notifies of a task's interruption. Spark 4.1 has no listener, so the task is polled every second. */
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
