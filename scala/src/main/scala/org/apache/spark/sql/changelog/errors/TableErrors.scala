// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.AnalysisException

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** The errors of followed tables. Most mean that the changes are unknown and the table must be read again. */
object TableErrors {

  /** @param reason the reason why the changes are unknown */
  def changesLost(table: String, version: String, reason: String): AnalysisException =
    lost("CHANGELOG_TABLE_CHANGES_LOST", table, version, "reason" -> reason)

  def columnsChanged(table: String, version: String): AnalysisException =
    lost("CHANGELOG_TABLE_COLUMNS_CHANGED", table, version)

  /** @param error names Delta's class */
  def deltaNotLinked(table: String, error: Throwable): AnalysisException =
    analysis(
      "CHANGELOG_DELTA_NOT_LINKED",
      Map("table" -> table, "cause" -> error.toString),
      error)

  def deltaNotSupported(user: String): AnalysisException =
    analysis("CHANGELOG_DELTA_NOT_SUPPORTED", Map("user" -> user, "version" -> SPARK_VERSION))

  def filesGone(cause: String): AnalysisException =
    analysis("CHANGELOG_TABLE_FILES_GONE", Map("cause" -> cause))

  def filesReplaced(table: String, file: String, version: String): AnalysisException =
    lost("CHANGELOG_TABLE_FILES_REPLACED", table, version, "file" -> file)

  def keyRepeated(table: String, key: Seq[String], row: String): AnalysisException =
    analysis(
      "CHANGELOG_TABLE_KEY_REPEATED",
      Map("table" -> table, "key" -> key.mkString(", "), "row" -> row))

  def replaced(table: String, version: String): AnalysisException =
    lost("CHANGELOG_TABLE_REPLACED", table, version)

  /** Returns whether a condition means that the whole table must be read again. */
  def asksForAll(condition: String): Boolean = conditions(condition)

  private val conditions = Set(
    "CHANGELOG_TABLE_CHANGES_LOST",
    "CHANGELOG_TABLE_COLUMNS_CHANGED",
    "CHANGELOG_TABLE_FILES_REPLACED",
    "CHANGELOG_TABLE_REPLACED")

  private def lost(
      condition: String,
      table: String,
      version: String,
      more: (String, String)*): AnalysisException =
    analysis(condition, Map("table" -> table, "version" -> version) ++ more)
}
