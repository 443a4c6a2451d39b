// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.util.control.NonFatal

import org.apache.spark.sql.Column
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.{col, count_if}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.views.history.RefreshReport

/**
 * What becomes of the rows that a view shows when those of another generation take their place.
 *
 * @param isOfAll
 *   whether the rows that are shown don't matter
 */
sealed abstract class Replacement(val isOfAll: Boolean)

object Replacement {

  /**
   * The view says something else, or has other columns: its table is another one to those who read its
   * changes.
   */
  case object Anew extends Replacement(isOfAll = true)

  /** All rows go, and all come. */
  case object OfAll extends Replacement(isOfAll = true)

  /**
   * Those go and come that differ. Columns that the view didn't have are the last ones, and there were NULLs in them.
   *
   * @param key
   *   columns that identify a new row, if any are known to: then a row of the same key has changed
   */
  case class OfDifference(key: Option[Seq[String]]) extends Replacement(isOfAll = false)

  /**
   * Of the rows that meet a condition, those go and come that differ; all others stay.
   *
   * @param condition
   *   true or false for each row
   * @param key
   *   columns that identify a row, if any are known to
   */
  case class Within(condition: Column, key: Option[Seq[String]])
      extends Replacement(isOfAll = false)
}

/** Shows the rows of another generation of a view, and reports how many have been written and retracted. */
private[views] class ReplaceRows(
    session: SparkSession,
    storage: ViewStorage,
    report: RefreshReport) {

  def apply(
      staged: KeptView,
      rows: DataFrame,
      how: Replacement,
      queryId: Option[String] = None): Unit = how match {
    case _: Replacement.OfDifference | _: Replacement.Within =>
      val before = storage.version(staged)
      storage.replace(staged, rows, how, queryId)
      // the rows are shown, even if somebody has switched off that changes are told
      try tell(storage.changes(staged, before + 1, None))
      catch { case NonFatal(_) => tellAll(staged) }
    case _ =>
      storage.replace(staged, rows, how, queryId)
      tellAll(staged)
  }

  /** The first rows of a view that has none. */
  def fill(view: KeptView, rows: DataFrame, queryId: String): Unit = {
    storage.fill(view, rows, queryId)
    tellAll(view)
  }

  /** Formats know how many rows they hold. */
  private def tellAll(shown: KeptView): Unit = report.wrote(session.table(shown.sql).count())

  /** How many rows those who follow the view see come and go. */
  private def tell(changes: DataFrame): Unit = {
    val kinds = Seq(RowKind.Insert, RowKind.UpdateAfter).map(RowKind.ChangeTypes(_))
    val comes = col(RowKind.ChangeTypeColumnName).isin(kinds: _*)
    val counted = changes.agg(count_if(comes), count_if(!comes)).head()
    report.changed(counted.getLong(0), counted.getLong(1))
  }
}
