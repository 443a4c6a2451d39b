// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

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
}

object FollowedWay {
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
            s"ALTER TABLE $name SET TBLPROPERTIES (delta.enableChangeDataFeed = true)"))

  final case class Files(name: String)
      extends FollowedWay(
        "by the list of its files",
        "new files; when a file is replaced or removed, everything",
        rowsOnlyCome = true,
        Some("its format doesn't say which rows change: a Delta table does"))
}
