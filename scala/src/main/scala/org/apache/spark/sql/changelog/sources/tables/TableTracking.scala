// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.changelog.connectors.delta.Delta

/**
 * TableTracking: the method of tracking a table's changes.
 *
 * @param name
 *   the table's name in SQL
 * @param method
 *   the method for `DESCRIBE`, after the words `followed by`
 * @param reads
 *   the data read by a refresh, as a sentence
 * @param advice
 *   how to reduce the data, as a sentence
 * @param tracksOnlyInserts
 *   whether only inserts are tracked. Updates and deletes then require a recomputation.
 * @param by
 *   the tracking method for the source, unless determined by the table's format
 * @param key
 *   the columns that identify a row; empty if unknown
 */
final case class TableTracking private (
    name: String,
    method: String,
    reads: String,
    advice: Option[String] = None,
    tracksOnlyInserts: Boolean = false,
    by: Option[String] = None,
    key: Seq[String] = Nil) {

  /** Whether the table is a Delta table. */
  def isDelta: Boolean = by.isEmpty && !tracksOnlyInserts

  /** Whether the table is followed by its list of files. */
  def isFiles: Boolean = by.isEmpty && tracksOnlyInserts

  /** Whether the table is an Iceberg table, followed by its snapshots. */
  def isSnapshots: Boolean = by.contains(TableTracking.BySnapshots)

  /** The options of the source of changes, see [[TableSourceProvider]]. */
  def options: Map[String, String] =
    Map(TableTracking.Table -> name) ++ by.map(TableTracking.By -> _)

  /** Returns the method and the data read as lines of `EXPLAIN CREATE`. */
  def explained: Seq[String] =
    s"$name is followed by $method. $reads" +: advice.map(text => s"  $text").toSeq
}

object TableTracking {

  /** The options of the source. */
  val Table = "table"
  val By = "by"

  val ByCopy = "copy"
  val ByChanges = "changes"
  val BySnapshots = "snapshots"

  private val ReadsChangedRows = "A refresh reads the changed rows."
  private val ReadsChangedFiles = "A refresh reads all rows of files with a changed row."

  def deltaFeed(name: String): TableTracking =
    TableTracking(name, "its change data feed", ReadsChangedRows)

  def deltaFiles(name: String): TableTracking = TableTracking(
    name,
    "the files that each version adds and removes",
    ReadsChangedFiles,
    Some(
      "To read the changed rows only, enable the change data feed: " +
        s"ALTER TABLE $name SET TBLPROPERTIES (${Delta.ChangeFeed} = true)"))

  def files(name: String): TableTracking = TableTracking(
    name,
    "the list of its files",
    "A refresh reads new files. If a file was replaced or removed, a refresh reads everything.",
    Some(
      "To track updates and deletes, use a Delta table, or compare all rows with a copy by " +
        "setting 'changelog.follow' = 'copies'."),
    tracksOnlyInserts = true)

  def changes(name: String): TableTracking = TableTracking(
    name,
    "the changes that its catalog returns",
    ReadsChangedRows,
    by = Some(ByChanges))

  def snapshots(name: String): TableTracking =
    TableTracking(name, "its snapshots", ReadsChangedFiles, by = Some(BySnapshots))

  /**
   * Returns the tracking by comparison with a copy.
   *
   * @param advice
   *   advice on better change tracking, as a sentence
   */
  def copy(name: String, key: Seq[String], advice: String): TableTracking = TableTracking(
    name,
    if (key.isEmpty) "comparing all rows with a copy"
    else key.mkString("comparing all rows with a copy by the primary key (", ", ", ")"),
    "A refresh reads the whole table once.",
    Some(advice),
    by = Some(ByCopy),
    key = key)
}
