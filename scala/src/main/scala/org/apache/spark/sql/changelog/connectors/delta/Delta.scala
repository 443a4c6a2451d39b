// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.RowKind

/** Names of Delta: properties, settings and error conditions. Its classes are not needed for them. */
private[changelog] object Delta {

  /** The folder of a table that holds its log. */
  val LogFolder = "_delta_log"

  /** The property of a table that turns on its change data feed. */
  val ChangeFeed = "delta.enableChangeDataFeed"

  /** The property of a table whose writers may mark rows as removed instead of rewriting files. */
  val DeletionVectors = "delta.enableDeletionVectors"

  /** The columns that the change data feed adds to those of the table. */
  val ColumnsOfFeed: Seq[String] =
    Seq(RowKind.ChangeTypeColumnName, "_commit_version", "_commit_timestamp")

  /** The setting that refuses versions older than the retention of deleted files. */
  val RefusesOldVersions =
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"

  /** The setting whose value is written into the next commit, and read by [[DeltaLogEntry.note]]. */
  val CommitNote = "spark.databricks.delta.commitInfo.userMetadata"

  /** The settings by which a statement writes a batch once, see [[DeltaCommit.batches]]. */
  val Application = "spark.databricks.delta.write.txnAppId"
  val ApplicationVersion = "spark.databricks.delta.write.txnVersion"

  /** The setting for the number of tasks that read a log. */
  val LogTasks = "spark.databricks.delta.snapshotPartitions"

  /** Reads logs in no more tasks than run at once, unless a user says how many: Delta's default is 50 for any log. */
  def limitLogTasks(session: SparkSession): Unit =
    if (!session.sessionState.conf.contains(LogTasks)) {
      session.conf.set(LogTasks, math.min(50, session.sparkContext.defaultParallelism))
    }

  /** The settings of statements that write a batch of `application`. Delta skips a batch that the table has already. */
  def ofBatch(application: String, batch: Long): Map[String, String] =
    Map(Application -> application, ApplicationVersion -> batch.toString)

  /** Runs something while a session has these settings. */
  def having(session: SparkSession, settings: Map[String, String])(body: => Any): Unit = {
    settings.foreach { case (name, value) => session.conf.set(name, value) }
    try {
      body
      ()
    } finally settings.keys.foreach(session.conf.unset)
  }

  /** The error condition of the change data feed where it was off. */
  val NoFeed = "DELTA_MISSING_CHANGE_DATA"

  /** Whether an error says that the table had incompatible columns within the versions that are read. */
  def hadOtherColumns(condition: String): Boolean =
    condition.startsWith("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE")

  /** Error conditions for a version that can no longer be read. */
  val VersionGone: Set[String] = Set(
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION")

  /** The error condition of a stream whose table is another one than when the stream was begun. */
  val OtherTable = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"

  /** Error conditions of a stream whose log has lost entries that were not read. */
  val LogGone: Set[String] = Set(
    "DELTA_MISSING_FILES_UNEXPECTED_VERSION",
    "DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT")

  /** Error conditions of a stream that takes appended rows only. */
  val OnlyAppends: Set[String] =
    Set("DELTA_SOURCE_IGNORE_DELETE", "DELTA_SOURCE_TABLE_IGNORE_CHANGES")

  /**
   * Whether a commit failed because properties were changed meanwhile, or because `OPTIMIZE` has moved rows. The
   * rows are the same, so the commit can be made again.
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
