// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * FollowedTable: a table with known changes between any two versions. Each tracking method has one implementation.
 *
 * Plans return the columns of the table. Plans of changes add the change type, unless only inserts are tracked.
 */
private[tables] trait FollowedTable {

  /** The state of the table at one time, before the comparison with the last version. */
  type TableSnapshot

  /** The table's name in SQL. */
  def name: String

  /** Whether only inserts are tracked, as for append-only tables. */
  def tracksOnlyInserts: Boolean

  def now(): TableSnapshot

  /** Returns the version of a snapshot. Fails if the changes since `start` are unknown. */
  def version(start: Option[TableVersion], snapshot: TableSnapshot): TableVersion

  /** Returns all rows of a version. */
  def rows(at: TableVersion): LogicalPlan

  /** Returns the changes after one version, up to another. */
  def changes(from: TableVersion, until: TableVersion): LogicalPlan

  /**
   * Returns the current size and the amount changed, or None if the amount is expensive to find. Fails as `version`
   * does.
   */
  def size(since: TableVersion): Option[TableSize]

  /** Deletes data stored for earlier versions. */
  def forget(before: TableVersion): Unit = ()

  /** Rejects another table of the same name, and other columns. */
  protected def checkSame(start: TableVersion, now: TableVersion): Unit = {
    if (start.id != now.id)
      throw analysis("CHANGELOG_TABLE_REPLACED", "table" -> name, "version" -> start.version)
    if (start.columns != now.columns)
      throw analysis(
        "CHANGELOG_TABLE_COLUMNS_CHANGED",
        "table" -> name,
        "version" -> start.version)
  }
}

/**
 * TableSize: the size of a table, and of its changes, in bytes of its files.
 *
 * @param changed
 *   the bytes to read for finding the changes. Unchanged rows of rewritten files count less, because they only cancel
 *   out.
 */
case class TableSize(inAll: Long, changed: Long)
