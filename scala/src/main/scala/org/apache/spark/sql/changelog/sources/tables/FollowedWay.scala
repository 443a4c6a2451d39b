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
 */
sealed abstract class FollowedWay(
    val way: String,
    val reads: String,
    val rowsOnlyCome: Boolean,
    val better: Option[String]) {
  def name: String

  /** The columns that identify a row, as far as that is known; none if not. */
  def key: Seq[String] = Nil

  /** What the source that gives the changes is told, see [[TableSourceProvider]]. */
  def options: Map[String, String] = Map(FollowedWay.Table -> name)
}

object FollowedWay {

  /** The options of the source. */
  val Table = "table"
  val By = "by"

  /** What the option `by` says where it is not the table's format that decides. */
  val ByCopy = "copy"
  val ByChanges = "changes"

  final case class DeltaFeed(name: String)
      extends FollowedWay(
        "by its change data feed",
        "the rows that have changed",
        rowsOnlyCome = false,
        None)

  final case class DeltaFiles(name: String)
      extends FollowedWay(
        "by the files that its versions add and remove",
        "all rows of files in which a row has changed",
        rowsOnlyCome = false,
        Some(
          "it has no change data feed: " +
            s"ALTER TABLE $name SET TBLPROPERTIES (${Delta.ChangeFeed} = true)"))

  final case class Files(name: String)
      extends FollowedWay(
        "by the list of its files",
        "new files; when a file is replaced or removed, everything",
        rowsOnlyCome = true,
        Some(
          "its format doesn't say which rows change: a Delta table does, and the property " +
            "'changelog.follow' = 'copies' compares all rows with a copy"))

  final case class Changes(name: String)
      extends FollowedWay(
        "by the changes that its catalog gives",
        "the rows that have changed",
        rowsOnlyCome = false,
        None) {
    override def options: Map[String, String] = super.options + (By -> ByChanges)
  }

  /** @param instead what would tell its changes */
  final case class Copy(name: String, override val key: Seq[String], instead: String)
      extends FollowedWay(
        if (key.isEmpty) "by comparing all its rows with a copy"
        else key.mkString("by comparing all its rows with a copy, primary key (", ", ", ")"),
        "all rows, once",
        rowsOnlyCome = false,
        Some(s"nothing tells which of its rows change: $instead")) {
    override def options: Map[String, String] = super.options + (By -> ByCopy)
  }
}
