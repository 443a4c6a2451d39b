// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.Attribute

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** The errors of a dry run, in the query or in the sample. */
object ExplainErrors {

  /** @param columns the columns of the source, if known */
  def sampleInvalid(line: String, columns: Seq[Attribute], reason: String): AnalysisException =
    analysis(
      "CHANGELOG_DRY_RUN_CHANGE_INVALID",
      Map(
        "line" -> line,
        "columns" -> (if (columns.isEmpty) "" else s" as a row of${listed(columns)}"),
        "reason" -> reason))

  /** @param sources the sources' names, empty for an unnamed source, and columns */
  def sampleSourceNotFound(
      line: String,
      name: Option[String],
      sources: Seq[(Option[String], Seq[Attribute])]): AnalysisException =
    analysis(
      "CHANGELOG_DRY_RUN_SOURCE_NOT_FOUND",
      Map(
        "line" -> line,
        "name" -> name.fold("none")(text => s"'$text'"),
        "sources" -> sources.zipWithIndex
          .map { case ((name, columns), index) =>
            s"${(Seq(s"${index + 1}") ++ name).mkString(" or ")}${listed(columns)}"
          }
          .mkString(", ")))

  def sampleEmpty(reason: String): AnalysisException =
    analysis("CHANGELOG_DRY_RUN_WITHOUT_ROWS", Map("reason" -> reason))

  private def listed(columns: Seq[Attribute]): String =
    if (columns.isEmpty) ""
    else columns.map(column => s"${column.name} ${column.dataType.sql}").mkString(" (", ", ", ")")
}
