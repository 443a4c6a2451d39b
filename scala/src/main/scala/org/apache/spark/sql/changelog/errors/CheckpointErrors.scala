// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/** The errors of a query that does not match its checkpoint. */
object CheckpointErrors {

  /** @param difference the differing lines of both queries */
  def otherQuery(checkpoint: String, difference: Seq[String]): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_QUERY_CHANGED",
      Map("checkpoint" -> checkpoint, "difference" -> difference.mkString("\n")))

  def otherOperators(checkpoint: String, difference: Seq[String]): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_QUERY_PLANNED_OTHERWISE",
      Map("checkpoint" -> checkpoint, "difference" -> difference.mkString("\n")))

  def otherSources(
      checkpoint: String,
      was: Seq[String],
      is: Seq[String]): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_SOURCES_CHANGED",
      Map("checkpoint" -> checkpoint, "was" -> was.mkString(", "), "is" -> is.mkString(", ")))

  def recordDamaged(file: String, cause: Throwable): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_QUERY_RECORD_DAMAGED",
      Map("file" -> file, "cause" -> cause.toString),
      cause)

  def recordMissing(file: String): ChangelogRuntimeException =
    runtime("CHANGELOG_QUERY_RECORD_MISSING", Map("file" -> file))
}
