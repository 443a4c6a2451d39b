// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.AnalysisException

import org.apache.spark.sql.changelog.errors.ChangelogErrors.{analysis, runtime}

/** The errors of snapshots read by the first batch of a feed. */
object SnapshotErrors {

  /** The batch that reads the snapshot was begun but not committed. */
  def changed(checkpoint: String): ChangelogRuntimeException =
    runtime("CHANGELOG_SNAPSHOT_CHANGED", Map("checkpoint" -> checkpoint))

  def columnMissing(function: String, column: String, columns: Seq[String]): AnalysisException =
    analysis(
      "CHANGELOG_SNAPSHOT_COLUMN_MISSING",
      Map("function" -> function, "column" -> column, "columns" -> columns.mkString(", ")))

  /**
   * @param found
   *   the type of the snapshot's column
   * @param expected
   *   the type of the feed's column
   */
  def columnType(
      function: String,
      column: String,
      found: String,
      expected: String): AnalysisException =
    analysis(
      "CHANGELOG_SNAPSHOT_COLUMN_TYPE",
      Map("function" -> function, "column" -> column, "found" -> found, "expected" -> expected))

  def gone(path: String): AnalysisException =
    analysis("CHANGELOG_SNAPSHOT_GONE", Map("path" -> path))

  def keyMissing(function: String): AnalysisException =
    analysis("CHANGELOG_SNAPSHOT_KEY_MISSING", Map("function" -> function))

  /** @param key the values of a key with several rows */
  def keyRepeated(key: String): ChangelogRuntimeException =
    runtime("CHANGELOG_SNAPSHOT_KEY_REPEATED", Map("key" -> key))

  def streaming(function: String): AnalysisException =
    analysis("CHANGELOG_SNAPSHOT_STREAMING", Map("function" -> function))
}
