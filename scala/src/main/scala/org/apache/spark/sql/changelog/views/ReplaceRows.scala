// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.util.control.NonFatal

import org.apache.spark.sql.Column
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.{col, count_if}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.connectors.delta.DeltaCommits
import org.apache.spark.sql.changelog.views.history.RefreshReport

/**
 * Replacement: how the rows of another generation replace the rows shown by a view.
 *
 * @param replacesAllRows
 *   whether every shown row is replaced, in contrast to the differing rows
 */
sealed abstract class Replacement(val replacesAllRows: Boolean)

object Replacement {

  /** Recreates the table, because the definition or the columns changed. Readers of the changes see another table. */
  case object RecreateTable extends Replacement(replacesAllRows = true)

  /** Replaces the whole table. */
  case object AllRows extends Replacement(replacesAllRows = true)

  /**
   * Replaces only the differing rows. New columns come last, with NULL in the old rows.
   *
   * @param key
   *   key columns of the new rows, if known. A row with an existing key is an update.
   */
  case class DifferingRows(key: Option[Seq[String]]) extends Replacement(replacesAllRows = false)

  /**
   * Replaces the differing rows among the rows under a condition, and leaves the remaining rows.
   *
   * @param condition
   *   true or false for each row
   * @param key
   *   key columns, if known
   */
  case class RowsWhere(condition: Column, key: Option[Seq[String]])
      extends Replacement(replacesAllRows = false)
}

/**
 * ReplaceRows: shows the rows of another generation of a view, and reports the numbers of written and retracted rows.
 */
private[views] class ReplaceRows(
    session: SparkSession,
    storage: ViewStorage,
    report: RefreshReport) {

  def apply(
      staged: MaterializedView,
      rows: DataFrame,
      how: Replacement,
      queryId: Option[String] = None): Unit = {
    how match {
      case _: Replacement.DifferingRows | _: Replacement.RowsWhere =>
        val before = storage.version(staged)
        storage.replace(staged, rows, how, queryId)
        // The rows are visible even if a user has switched off the table's change feed.
        try reportChanges(storage.changes(staged, before + 1, None))
        catch { case NonFatal(_) => reportAllRows(staged) }
      case _ =>
        storage.replace(staged, rows, how, queryId)
        reportAllRows(staged)
    }
    report.shows(storage.lastVersion(staged))
  }

  /** Writes the first rows of an empty view. */
  def fill(view: MaterializedView, rows: DataFrame, queryId: String): Unit = {
    storage.fill(view, rows, queryId)
    reportAllRows(view)
  }

  /** Reports all rows as written. The commit or the files have the number of rows. */
  private def reportAllRows(shown: MaterializedView): Unit = {
    val known = if (shown.isDelta) DeltaCommits.numRowsAdded(session, shown.sql) else None
    new ViewCatalog(session).invalidate(shown.name)
    report.wrote(known.getOrElse(session.table(shown.sql).count()))
  }

  /** Reports the rows inserted and deleted, as a reader of the view's changes sees them. */
  private def reportChanges(changes: DataFrame): Unit = {
    val kinds = Seq(RowKind.Insert, RowKind.UpdateAfter).map(RowKind.ChangeTypes(_))
    val comes = col(RowKind.ChangeTypeColumnName).isin(kinds: _*)
    val counted = changes.agg(count_if(comes), count_if(!comes)).head()
    report.changed(counted.getLong(0), counted.getLong(1))
  }
}
