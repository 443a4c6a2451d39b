// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.io.InterruptedIOException
import java.nio.channels.ClosedByInterruptException

import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.rocksdb.RocksDBException

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.state.StateStoreId
import org.apache.spark.{SparkThrowable, TaskKilledException}

import org.apache.spark.sql.changelog.errors.{ChangelogRuntimeException, CheckpointFileErrors}

/**
 * Says where state is that can't be read, of which files, and what to do. Spark's providers give
 * the error of whatever reads them.
 */
private[changelog] class StateReadFailures(
    id: StateStoreId,
    version: Long,
    hadoopConf: Configuration) {
  import StateReadFailures._

  def whileOpening[T](open: => T): T =
    try open
    catch { case error: Exception if isOfFiles(error) => throw notReadable(error) }

  /** RocksDB reads its files as rows are asked for. */
  def whileReading[T](rows: => Iterator[T]): Iterator[T] = {
    val checked = checking(rows)
    new Iterator[T] {
      override def hasNext: Boolean = checking(checked.hasNext)
      override def next(): T = checking(checked.next())
    }
  }

  private def checking[T](body: => T): T =
    try body
    catch { case error: RocksDBException => throw notReadable(error) }

  private def notReadable(error: Exception): ChangelogRuntimeException = {
    val folder = id.storeCheckpointLocation()
    CheckpointFileErrors.stateNotReadable(
      id.operatorId,
      folder.toString,
      version,
      Try(filesOfVersion).getOrElse(Nil),
      error)
  }

  /** Ours say all that; who was told to end, or waits in vain for another task, has read none. */
  private def isOfFiles(error: Exception): Boolean =
    CheckpointFileErrors.causes(error).forall {
      case _: ChangelogRuntimeException | _: InterruptedException | _: InterruptedIOException |
          _: ClosedByInterruptException | _: TaskKilledException =>
        false
      case spark: SparkThrowable =>
        !Option(spark.getCondition).exists(_.contains("UNRELEASED_THREAD"))
      case _ => true
    }

  /** The newest snapshot up to the version that is there, and the changes since. */
  private def filesOfVersion: Seq[String] = {
    val folder = id.storeCheckpointLocation()
    val files =
      CheckpointFileManager.create(folder, hadoopConf).list(folder).map(_.getPath.getName)
    val versions = files.toSeq.collect {
      case name @ StateFile(number, kind) if number.toLong <= version =>
        (number.toLong, kind, name)
    }
    val (snapshots, changes) = versions.partition { case (_, kind, _) => Snapshots(kind) }
    val start = snapshots.map(_._1).maxOption.getOrElse(0L)
    val read = snapshots.filter(_._1 == start) ++ changes.filter(_._1 > start)
    val names = read.sortBy(_._1).map {
      case (_, "zip", name) => s"$name with files in SSTs"
      case (_, _, name) => name
    }
    if (read.exists(_._1 == version)) names else names :+ s"$version.* (missing)"
  }
}

private object StateReadFailures {
  private val Snapshots = Set("snapshot", "zip")

  /** Of an attempt, where each has files of its own. */
  private val StateFile = """(\d+)(?:_.*)?\.(snapshot|zip|delta|changelog)""".r
}
