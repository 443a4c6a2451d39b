// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.snapshots

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.Source
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.sources.LatestOffsetProvider

/**
 * The streaming source `changelog-snapshots`: the changes of a batch query that runs once per
 * trigger.
 *
 * Option `query`: the query, as SQL; or `table`: a table or view.
 */
class SnapshotSourceProvider extends LatestOffsetProvider("changelog-snapshots") {

  override protected def schemaOf(
      session: SparkSession,
      options: Map[String, String]): StructType = {
    val columns = columnsOf(session, queryOf(options))
    columns.fieldNames.find(_.equalsIgnoreCase(RowKind.ChangeTypeColumnName)).foreach { name =>
      throw ChangelogErrors.argumentInvalid(
        shortName(),
        "query",
        s"'${queryOf(options)}'",
        s"the column $name has the reserved name of the change type column")
    }
    SnapshotSource.withChangeType(columns)
  }

  override protected def source(
      session: SparkSession,
      options: Map[String, String],
      folder: Path): Source = {
    val query = queryOf(options)
    new SnapshotSource(session, query, folder, columnsOf(session, query))
  }

  private def columnsOf(session: SparkSession, query: String): StructType =
    session.sql(query).schema.asNullable

  private def queryOf(parameters: Map[String, String]): String =
    (parameters.get("query"), parameters.get("table")) match {
      case (Some(query), None) => query
      case (None, Some(table)) => s"SELECT * FROM $table"
      case (query, table) =>
        throw ChangelogErrors.argumentInvalid(
          shortName(),
          "query",
          (query ++ table).map(text => s"'$text'").mkString(" and ") match {
            case "" => "NULL"
            case text => text
          },
          "either a query or a table is expected")
    }
}
