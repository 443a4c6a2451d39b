// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.Attribute

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** What can be wrong with a query, or with the changes beside it, that is to be shown at work. */
object ExplainErrors {

  /**
   * @param columns
   *   those of the source, as far as that is known
   */
  def sampleInvalid(line: String, columns: Seq[Attribute], reason: String): AnalysisException =
    analysis(
      "CHANGELOG_DRY_RUN_CHANGE_INVALID",
      Map(
        "line" -> line,
        "columns" -> (if (columns.isEmpty) "" else s" as a row of${listed(columns)}"),
        "reason" -> reason))

  /** @param sources the names of sources, none where one has no name, and their columns */
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
