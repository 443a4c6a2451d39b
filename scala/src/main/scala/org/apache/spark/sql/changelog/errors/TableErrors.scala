// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.AnalysisException

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** The errors of tables whose changes can't be told, so that all must be read again. */
object TableErrors {
  def changesLost(table: String, version: Long): AnalysisException =
    lost("CHANGELOG_TABLE_CHANGES_LOST", table, version)

  def columnsChanged(table: String, version: Long): AnalysisException =
    lost("CHANGELOG_TABLE_COLUMNS_CHANGED", table, version)

  def filesGone(cause: String): AnalysisException =
    analysis("CHANGELOG_TABLE_FILES_GONE", Map("cause" -> cause))

  def filesReplaced(table: String, file: String, version: Long): AnalysisException =
    lost("CHANGELOG_TABLE_FILES_REPLACED", table, version, "file" -> file)

  def replaced(table: String, version: Long): AnalysisException =
    lost("CHANGELOG_TABLE_REPLACED", table, version)

  /** Whether a condition says that all must be read again. */
  def asksForAll(condition: String): Boolean = conditions(condition)

  private val conditions = Set(
    "CHANGELOG_TABLE_CHANGES_LOST",
    "CHANGELOG_TABLE_COLUMNS_CHANGED",
    "CHANGELOG_TABLE_FILES_REPLACED",
    "CHANGELOG_TABLE_REPLACED")

  private def lost(
      condition: String,
      table: String,
      version: Long,
      more: (String, String)*): AnalysisException =
    analysis(condition, Map("table" -> table, "version" -> version.toString) ++ more)
}
