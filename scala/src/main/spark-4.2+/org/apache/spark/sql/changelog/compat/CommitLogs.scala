// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.{CommitLog, CommitMetadataBase}

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
