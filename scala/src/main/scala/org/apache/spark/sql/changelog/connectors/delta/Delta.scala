// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import scala.annotation.tailrec
import scala.util.{DynamicVariable, Failure, Success, Try}

import org.apache.spark.SparkThrowable
import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.checkpoint.Fence

/** Delta: names of properties, settings and error conditions. This object needs no class of Delta. */
private[changelog] object Delta {

  /** The folder of a table with the table's log. */
  val LogFolder = "_delta_log"

  /** The table property for the change data feed. */
  val ChangeFeed = "delta.enableChangeDataFeed"

  /** The table property for deletion vectors, with which writers mark rows as removed instead of rewriting files. */
  val DeletionVectors = "delta.enableDeletionVectors"

  /** The columns added by the change data feed. */
  val ColumnsOfFeed: Seq[String] =
    Seq(RowKind.ChangeTypeColumnName, "_commit_version", "_commit_timestamp")

  /** The setting that rejects versions older than the retention of deleted files. */
  val RefusesOldVersions =
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"

  /** The setting for a note in the next commit, read by [[DeltaLogEntry.note]]. */
  val CommitNote = "spark.databricks.delta.commitInfo.userMetadata"

  /** The settings by which a statement writes a batch once, see [[DeltaCommit.batches]]. */
  val Application = "spark.databricks.delta.write.txnAppId"
  val ApplicationVersion = "spark.databricks.delta.write.txnVersion"

  /** The setting for the number of tasks that read a log. */
  val LogTasks = "spark.databricks.delta.snapshotPartitions"

  /**
   * Limits the tasks that read a log to the available cores, unless a user sets a number. Delta's default is 50 for any
   * log.
   */
  def limitLogTasks(session: SparkSession): Unit =
    if (!session.sessionState.conf.contains(LogTasks)) {
      session.conf.set(LogTasks, math.min(50, session.sparkContext.defaultParallelism))
    }

  /**
   * Returns the settings of statements that write a batch of `application`. Delta skips a batch already in the table.
   */
  def ofBatch(application: String, batch: Long): Map[String, String] =
    Map(Application -> application, ApplicationVersion -> batch.toString)

  /** Runs `body` while a session has these settings. */
  def having[T](session: SparkSession, settings: Map[String, String])(body: => T): T = {
    val before = settings.keys.map(name => name -> session.conf.getOption(name))
    settings.foreach { case (name, value) => session.conf.set(name, value) }
    try body
    finally
      before.foreach { case (name, value) =>
        value.fold(session.conf.unset(name))(session.conf.set(name, _))
      }
  }

  /** The error condition for reading the change data feed of versions without a feed. */
  val NoFeed = "DELTA_MISSING_CHANGE_DATA"

  /** Returns whether an error reports incompatible columns within the versions read. */
  def hadOtherColumns(condition: String): Boolean =
    condition.startsWith("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE")

  /** Error conditions for a version that can no longer be read. */
  val VersionGone: Set[String] = Set(
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION")

  /** The error condition of a stream over a table replaced since the stream's start. */
  val OtherTable = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"

  /** Error conditions of a stream whose log has lost unread entries. */
  val LogGone: Set[String] = Set(
    "DELTA_MISSING_FILES_UNEXPECTED_VERSION",
    "DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT")

  /** Error conditions of a stream that reads appended rows only. */
  val OnlyAppends: Set[String] =
    Set("DELTA_SOURCE_IGNORE_DELETE", "DELTA_SOURCE_TABLE_IGNORE_CHANGES")

  /**
   * Returns whether a commit failed because of changed properties, or because `OPTIMIZE` has moved rows. The rows are
   * unchanged, so the commit can be repeated.
   */
  def isMaintenanceConflict(error: Throwable): Boolean = error match {
    case named: SparkThrowable =>
      def isMoved =
        Option(named.getMessageParameters.get("operation")).exists(_.contains("OPTIMIZE"))
      Option(named.getCondition).exists { condition =>
        TableChanged(condition) || condition.startsWith("DELTA_CONCURRENT_") && isMoved
      }
    case _ => false
  }

  private val TableChanged = Set("DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")

  /** The error condition of a failure. */
  object Error {
    def unapply(error: Throwable): Option[String] = error match {
      case named: SparkThrowable => Option(named.getCondition)
      case _ => None
    }
  }
}

/** Commits within the fences of the thread. Repeats a commit that failed because of concurrent maintenance. */
private[changelog] object DeltaConflicts extends Logging {
  private val Most = 5
  private val changing = new DynamicVariable[Option[DeltaProperties]](None)

  /** Runs a statement, and repeats the statement after a conflict with maintenance. */
  @tailrec
  def passing[T](statement: => T, left: Int = Most): T = Try(observed(statement)) match {
    case Success(result) => result
    case Failure(error) if left > 0 && Delta.isMaintenanceConflict(error) =>
      logInfo(log"Another writer changed a table during the write; the commit is repeated", error)
      passing(statement, left - 1)
    case Failure(error) => throw error
  }

  /** Lets the statement's commits to the table with certain properties also change these properties. */
  def changing[T](properties: DeltaProperties)(statement: => T): T =
    changing.withValue(Some(properties))(observed(statement))

  private def observed[T](statement: => T): T =
    if (Fence.isSet || changing.value.nonEmpty) DeltaWrites.observed(changing.value)(statement)
    else statement
}

/**
 * The properties set by a commit that changes a table's rows.
 *
 * @param prefix
 *   the prefix of the names. Properties with this prefix and without a new value are removed.
 * @param kept
 *   names of properties to leave as they are
 * @param check
 *   runs before the commit. From then on, a commit of another writer lets the commit fail.
 */
private[changelog] final case class DeltaProperties(
    prefix: String,
    values: Map[String, String],
    kept: Set[String],
    check: () => Unit) {

  /** Returns the table's new properties, or None for other tables. */
  private[delta] def of(before: Map[String, String]): Option[Map[String, String]] = {
    val (own, others) = before.partition { case (name, _) => name.startsWith(prefix) }
    Option.when(own.nonEmpty)(
      others ++ own.filter(property => kept(property._1)) ++
        values.filter(_._1.startsWith(prefix)))
  }
}
