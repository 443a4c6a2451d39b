// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.Source
import org.apache.spark.sql.types.{StringType, StructType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.sources.LatestOffsetProvider

/**
 * TableSourceProvider: the streaming source `changelog-table-changes`, by which views follow tables. The source has two
 * options:
 *   - `table`: the table's name.
 *   - `by`: `copy` to compare all rows with a copy, `changes` to read the changes from the catalog, or `snapshots` to
 *     compare snapshots of an Iceberg table. By default, the table's format decides.
 */
class TableSourceProvider extends LatestOffsetProvider(FollowedTables.SourceName) {

  override protected def schemaOf(
      session: SparkSession,
      options: Map[String, String]): StructType =
    schemaOf(session, FollowedTables.open(session, options, new Path("none")))

  override protected def source(
      session: SparkSession,
      options: Map[String, String],
      folder: Path): Source = {
    val table = FollowedTables.open(session, options, folder)
    new TableSource(session, table, schemaOf(session, table))
  }

  private def schemaOf(session: SparkSession, table: FollowedTable): StructType = {
    val columns = fromAttributes(FollowedTables.lookUp(session, table.name).output)
    if (table.tracksOnlyInserts) columns
    else columns.add(RowKind.ChangeTypeColumnName, StringType, nullable = false)
  }
}
