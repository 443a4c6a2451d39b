// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.FileNotFoundException

import org.apache.spark.SparkThrowable

import org.apache.spark.sql.changelog.connectors.delta.Delta
import org.apache.spark.sql.changelog.connectors.iceberg.IcebergRelation
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * RefreshFailure: why a refresh failed, as far as the cause decides the next step.
 *
 * @param requiresRecompute
 *   the changes are lost, but all rows can be read
 * @param isOfRows
 *   the query fails for some values, such as a divisor of zero. The rows may be corrected.
 */
final case class RefreshFailure(
    error: Throwable,
    requiresRecompute: Boolean = false,
    isOfRows: Boolean = false)

object RefreshFailure {
  private def requiringRecompute(error: Throwable) =
    RefreshFailure(error, requiresRecompute = true)

  def of(error: Throwable): RefreshFailure = {
    val causes = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(Deepest).toSeq
    val conditions = causes.flatMap {
      case named: SparkThrowable => Option(named.getCondition).map(_ -> named)
      case _ => None
    }
    conditions
      .collectFirst {
        case (condition, named: Throwable) if ChangesLost(condition) =>
          requiringRecompute(named)
        case (Delta.OtherTable, named: Throwable) =>
          requiringRecompute(
            analysis(
              "CHANGELOG_READ_TABLE_REPLACED",
              "cause" -> named.getMessage.linesIterator.next()))
        case (condition, named: Throwable) if condition.endsWith(OtherType) =>
          requiringRecompute(
            analysis("CHANGELOG_READ_TABLE_REPLACED", "cause" -> firstSentence(named.getMessage)))
        case (condition, named: Throwable) if Delta.LogGone(condition) =>
          requiringRecompute(
            analysis("CHANGELOG_TABLE_FILES_GONE", "cause" -> firstSentence(named.getMessage)))
        case (condition, named: Throwable) if Delta.OnlyAppends(condition) =>
          RefreshFailure(
            analysis(
              "CHANGELOG_STREAM_OF_CHANGED_TABLE",
              "cause" -> firstSentence(named.getMessage)))
      }
      .orElse(causes.flatMap(IcebergRelation.changedInStream(_)).headOption.map { cause =>
        RefreshFailure(analysis("CHANGELOG_STREAM_OF_CHANGED_TABLE", "cause" -> cause))
      })
      .getOrElse {
        val isGone = conditions.map(_._1).exists(_.endsWith("FILE_NOT_EXIST"))
        if (isGone || causes.exists(_.isInstanceOf[FileNotFoundException])) {
          val file = causes.last.getMessage.linesIterator.next()
          requiringRecompute(analysis("CHANGELOG_TABLE_FILES_GONE", "cause" -> file))
        } else if (conditions.exists { case (_, named) => hasStateOfRows(named) })
          RefreshFailure(error, isOfRows = true)
        else RefreshFailure(error)
      }
  }

  private def hasStateOfRows(error: SparkThrowable): Boolean =
    Option(error.getSqlState).exists(state => OfRows.exists(state.startsWith))

  /** SQLSTATEs of failures caused by values: cardinality, data, user-defined functions, `raise_error`. */
  private val OfRows = Seq("21", "22", "39", "P0")

  /** The later sentences advise settings that would skip changes. */
  private def firstSentence(message: String): String =
    message.linesIterator.next().split("(?<=\\.) ", 2).head

  /** Errors after which all rows must be read again. With the first, the query reads tables in other ways. */
  private val ChangesLost = Set(
    "CHANGELOG_QUERY_CHANGED",
    "CHANGELOG_TABLE_CHANGES_LOST",
    "CHANGELOG_TABLE_COLUMNS_CHANGED",
    "CHANGELOG_TABLE_FILES_REPLACED",
    "CHANGELOG_TABLE_REPLACED")

  /** An upstream view was recreated as files, and one snapshot has a column of another type. */
  private val OtherType = "PARQUET_COLUMN_DATA_TYPE_MISMATCH"

  private val Deepest = 20
}
