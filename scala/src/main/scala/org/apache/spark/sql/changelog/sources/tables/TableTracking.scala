// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.changelog.connectors.delta.Delta

/**
 * TableTracking: how a table is followed.
 *
 * @param name
 *   the table's name in SQL
 * @param reads
 *   the data read by a refresh, for people
 * @param tracksOnlyInserts
 *   whether only inserts are tracked. Updates and deletes then require a recomputation.
 * @param better
 *   why no better way is available, and the remedy
 * @param by
 *   the tracking method for the source, unless determined by the table's format
 * @param key
 *   the columns that identify a row; empty if unknown
 */
final case class TableTracking private (
    name: String,
    way: String,
    reads: String,
    better: Option[String] = None,
    tracksOnlyInserts: Boolean = false,
    by: Option[String] = None,
    key: Seq[String] = Nil) {

  /** Whether the table is a Delta table. */
  def isDelta: Boolean = by.isEmpty && !tracksOnlyInserts

  /** Whether the table is followed by its list of files. */
  def isFiles: Boolean = by.isEmpty && tracksOnlyInserts

  /** The options of the source of changes, see [[TableSourceProvider]]. */
  def options: Map[String, String] =
    Map(TableTracking.Table -> name) ++ by.map(TableTracking.By -> _)
}

object TableTracking {

  /** The options of the source. */
  val Table = "table"
  val By = "by"

  val ByCopy = "copy"
  val ByChanges = "changes"

  def deltaFeed(name: String): TableTracking =
    TableTracking(name, "by its change data feed", "the rows that have changed")

  def deltaFiles(name: String): TableTracking = TableTracking(
    name,
    "by the files that its versions add and remove",
    "all rows of files in which a row has changed",
    Some(
      "it has no change data feed: " +
        s"ALTER TABLE $name SET TBLPROPERTIES (${Delta.ChangeFeed} = true)"))

  def files(name: String): TableTracking = TableTracking(
    name,
    "by the list of its files",
    "new files; when a file is replaced or removed, everything",
    Some(
      "its format doesn't say which rows change: a Delta table does, and the property " +
        "'changelog.follow' = 'copies' compares all rows with a copy"),
    tracksOnlyInserts = true)

  def changes(name: String): TableTracking = TableTracking(
    name,
    "by the changes that its catalog gives",
    "the rows that have changed",
    by = Some(ByChanges))

  /**
   * Returns the way of comparing with a copy.
   *
   * @param instead
   *   advice on better change tracking
   */
  def copy(name: String, key: Seq[String], instead: String): TableTracking = TableTracking(
    name,
    if (key.isEmpty) "by comparing all its rows with a copy"
    else key.mkString("by comparing all its rows with a copy, primary key (", ", ", ")"),
    "all rows, once",
    Some(s"nothing tells which of its rows change: $instead"),
    by = Some(ByCopy),
    key = key)
}
