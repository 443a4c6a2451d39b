// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.errors.TableErrors

/**
 * A table whose changes between two of its versions can be told, of one kind.
 *
 * Plans give the columns of the table, those of changes also their types, unless rows only come.
 */
private[tables] trait FollowedTable {

  /** What is known of the table at one moment. */
  type Moment

  /** What it is called in SQL. */
  def name: String

  /** Whether rows only come. */
  def rowsOnlyCome: Boolean

  def now(): Moment

  /** The version of a moment. Refuses a table that can't be followed from `start` to there. */
  def version(start: Option[TableVersion], moment: Moment): TableVersion

  /** All rows, as of a version. */
  def rows(at: TableVersion): LogicalPlan

  /** What has changed after one version, up to another. */
  def changes(from: TableVersion, until: TableVersion): LogicalPlan

  /**
   * How much it holds now, and how much of that has changed; none if that costs too much to know. Refuses
   * what `version` refuses.
   */
  def size(since: TableVersion): Option[TableSize]

  /** Lets go what is kept of versions before one. */
  def forget(before: TableVersion): Unit = ()

  /** Refuses another table of the same name, or another list of columns. */
  protected def checkSame(start: TableVersion, now: TableVersion): Unit = {
    if (start.id != now.id) throw TableErrors.replaced(name, start.version)
    if (start.columns != now.columns) throw TableErrors.columnsChanged(name, start.version)
  }
}

/**
 * How much a table holds, and how much of it has changed, in bytes of its files.
 *
 * @param changed
 *   what is to be gone through to know what has changed. Of files that were written anew, rows that
 *   stayed what they were count less: they only cancel out
 */
case class TableSize(inAll: Long, changed: Long)
