// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.FileNotFoundException

import org.apache.spark.SparkThrowable

import org.apache.spark.sql.changelog.connectors.delta.Delta
import org.apache.spark.sql.changelog.errors.{TableErrors, ViewErrors}

/** Why a refresh has failed, as far as it matters for what is done then. */
sealed trait RefreshFailure {
  def error: Throwable
}

object RefreshFailure {

  /** What has changed can't be told, but all rows can be read. */
  final case class AsksForAll(error: Throwable) extends RefreshFailure

  /** Rows that its query can't be computed over, such as a divisor of zero; they may be mended. */
  final case class BadRows(error: Throwable) extends RefreshFailure

  final case class Other(error: Throwable) extends RefreshFailure

  def apply(error: Throwable): RefreshFailure = {
    val causes = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(Deepest).toSeq
    val conditions = causes.flatMap {
      case named: SparkThrowable => Option(named.getCondition).map(_ -> named)
      case _ => None
    }
    conditions
      .collectFirst {
        case (condition, named: Throwable)
            if TableErrors.asksForAll(condition) || Changed(condition) =>
          AsksForAll(named)
        case (Delta.OtherTable, named: Throwable) =>
          AsksForAll(ViewErrors.readTableReplaced(named.getMessage.linesIterator.next()))
        case (condition, named: Throwable) if condition.endsWith(OtherType) =>
          AsksForAll(ViewErrors.readTableReplaced(firstSentence(named.getMessage)))
        case (condition, named: Throwable) if Delta.LogGone(condition) =>
          AsksForAll(TableErrors.filesGone(firstSentence(named.getMessage)))
        case (condition, named: Throwable) if Delta.OnlyAppends(condition) =>
          Other(ViewErrors.streamOfChangedTable(firstSentence(named.getMessage)))
      }
      .getOrElse {
        val isGone = conditions.map(_._1).exists(_.endsWith("FILE_NOT_EXIST"))
        if (isGone || causes.exists(_.isInstanceOf[FileNotFoundException])) {
          val file = causes.last.getMessage.linesIterator.next()
          AsksForAll(TableErrors.filesGone(file))
        } else if (conditions.exists { case (_, named) => isOfRows(named) }) BadRows(error)
        else Other(error)
      }
  }

  private def isOfRows(error: SparkThrowable): Boolean =
    Option(error.getSqlState).exists(state => OfRows.exists(state.startsWith))

  /** SQLSTATEs of what fails by the values of rows: cardinality, data, functions of users, `raise_error`. */
  private val OfRows = Seq("21", "22", "39", "P0")

  /** What comes after it is advice, by which changes would be left out. */
  private def firstSentence(message: String): String =
    message.linesIterator.next().split("(?<=\\.) ", 2).head

  /** The query reads its tables in another way than when it was begun. */
  private val Changed = Set("CHANGELOG_QUERY_CHANGED")

  /** A view that it reads was made anew as files, of which a snapshot has a column of another type. */
  private val OtherType = "PARQUET_COLUMN_DATA_TYPE_MISMATCH"

  private val Deepest = 20
}
