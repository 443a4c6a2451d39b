// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.changelog.connectors.delta.Delta

/**
 * How a table is followed.
 *
 * @param name
 *   what the table is called in SQL
 * @param reads
 *   what a refresh reads
 * @param rowsOnlyCome
 *   whether rows only come; if others change, all is computed anew
 * @param better
 *   why it is not followed better, and what to do about it
 * @param by
 *   what the source that gives the changes is told, where it is not the table's format that decides
 * @param key
 *   the columns that identify a row, as far as that is known; none if not
 */
final case class FollowedWay private (
    name: String,
    way: String,
    reads: String,
    better: Option[String] = None,
    rowsOnlyCome: Boolean = false,
    by: Option[String] = None,
    key: Seq[String] = Nil) {

  /** Whether the table is one of Delta. */
  def isDelta: Boolean = by.isEmpty && !rowsOnlyCome

  /** Whether the table is followed by the list of its files. */
  def isFiles: Boolean = by.isEmpty && rowsOnlyCome

  /** The options of the source that gives the changes, see [[TableSourceProvider]]. */
  def options: Map[String, String] =
    Map(FollowedWay.Table -> name) ++ by.map(FollowedWay.By -> _)
}

object FollowedWay {

  /** The options of the source. */
  val Table = "table"
  val By = "by"

  val ByCopy = "copy"
  val ByChanges = "changes"

  def deltaFeed(name: String): FollowedWay =
    FollowedWay(name, "by its change data feed", "the rows that have changed")

  def deltaFiles(name: String): FollowedWay = FollowedWay(
    name,
    "by the files that its versions add and remove",
    "all rows of files in which a row has changed",
    Some(
      "it has no change data feed: " +
        s"ALTER TABLE $name SET TBLPROPERTIES (${Delta.ChangeFeed} = true)"))

  def files(name: String): FollowedWay = FollowedWay(
    name,
    "by the list of its files",
    "new files; when a file is replaced or removed, everything",
    Some(
      "its format doesn't say which rows change: a Delta table does, and the property " +
        "'changelog.follow' = 'copies' compares all rows with a copy"),
    rowsOnlyCome = true)

  def changes(name: String): FollowedWay = FollowedWay(
    name,
    "by the changes that its catalog gives",
    "the rows that have changed",
    by = Some(ByChanges))

  /** @param instead what would tell its changes */
  def copy(name: String, key: Seq[String], instead: String): FollowedWay = FollowedWay(
    name,
    if (key.isEmpty) "by comparing all its rows with a copy"
    else key.mkString("by comparing all its rows with a copy, primary key (", ", ", ")"),
    "all rows, once",
    Some(s"nothing tells which of its rows change: $instead"),
    by = Some(ByCopy),
    key = key)
}
