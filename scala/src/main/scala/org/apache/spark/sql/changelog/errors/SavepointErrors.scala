// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.AnalysisException

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** The errors of savepoints and forks. The owner of the batches is named in the user's terms, such as "the view v". */
object SavepointErrors {

  /** @param possible the batches from which a query can continue */
  def batchGone(of: String, batch: Long, reason: String, possible: Seq[Long]): AnalysisException =
    analysis(
      "CHANGELOG_BATCH_GONE",
      Map(
        "of" -> of,
        "batch" -> batch.toString,
        "reason" -> reason,
        "possible" -> ranges(possible)))

  def forkNotPossible(of: String, reason: String): AnalysisException =
    analysis("CHANGELOG_FORK_NOT_POSSIBLE", Map("of" -> of, "reason" -> reason))

  def exists(of: String, savepoint: String): AnalysisException =
    analysis("CHANGELOG_SAVEPOINT_EXISTS", Map("of" -> capital(of), "savepoint" -> savepoint))

  def notFound(of: String, savepoint: String, known: Seq[String]): AnalysisException =
    analysis(
      "CHANGELOG_SAVEPOINT_NOT_FOUND",
      Map(
        "of" -> capital(of),
        "savepoint" -> savepoint,
        "known" -> (if (known.isEmpty) "none" else known.mkString(", "))))

  private def capital(text: String): String = text.take(1).toUpperCase + text.drop(1)

  /** Returns the batches as text: `no batch`, `batch 3` or `batch 3 to batch 7`. */
  private def ranges(batches: Seq[Long]): String = {
    val ends = batches.sorted.foldLeft(List.empty[(Long, Long)]) {
      case ((first, last) :: rest, batch) if batch == last + 1 => (first, batch) :: rest
      case (ends, batch) => (batch, batch) :: ends
    }
    if (ends.isEmpty) "no batch"
    else {
      ends.reverse
        .map { case (first, last) =>
          if (first == last) s"batch $first" else s"batch $first to batch $last"
        }
        .mkString(", ")
    }
  }
}
