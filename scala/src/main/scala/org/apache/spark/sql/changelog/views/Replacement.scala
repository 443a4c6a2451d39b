// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.Column

/** What becomes of the rows that a view shows when those of another generation take their place. */
sealed trait Replacement {

  /** Whether the rows that are shown don't matter. */
  def isOfAll: Boolean = true
}

object Replacement {

  /**
   * The view says something else, or has other columns: its table is another one to those who read its
   * changes.
   */
  case object Anew extends Replacement

  /** All rows go, and all come. */
  case object OfAll extends Replacement

  /**
   * Of the rows that meet a condition, those go and come that differ; all others stay.
   *
   * @param condition
   *   true or false for each row
   * @param key
   *   columns that identify a row, if any are known to
   */
  case class Within(condition: Column, key: Option[Seq[String]]) extends Replacement {
    override def isOfAll: Boolean = false
  }

  /**
   * Those go and come that differ. Columns that the view didn't have are the last ones, and there were NULLs in them.
   *
   * @param key
   *   columns that identify a new row, if any are known to: then a row of the same key has changed
   */
  case class OfDifference(key: Option[Seq[String]]) extends Replacement {
    override def isOfAll: Boolean = false
  }
}
