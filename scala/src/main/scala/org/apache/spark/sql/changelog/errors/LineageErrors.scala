// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.TableIdentifier

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** The errors of `WHY`. */
object LineageErrors {

  def readsStream(node: String): AnalysisException =
    analysis("CHANGELOG_WHY_READS_STREAM", Map("node" -> node))

  def forgetsRows(view: TableIdentifier): AnalysisException =
    analysis("CHANGELOG_WHY_ROWS_FORGOTTEN", Map("view" -> view.quotedString))
}
