// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.snapshots

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.Source
import org.apache.spark.sql.sources.{DataSourceRegister, StreamSourceProvider}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.errors.ChangelogErrors

/**
 * The streaming source `changelog-snapshots`: the changes of a batch query that runs once per
 * trigger.
 *
 * Option `query`: the query, as SQL; or `table`: a table or view.
 */
class SnapshotSourceProvider extends StreamSourceProvider with DataSourceRegister {

  override def shortName(): String = "changelog-snapshots"

  override def sourceSchema(
      sqlContext: SQLContext,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): (String, StructType) = {
    val columns = columnsOf(sqlContext, queryOf(parameters))
    columns.fieldNames.find(_.equalsIgnoreCase(RowKind.ChangeTypeColumnName)).foreach { name =>
      throw ChangelogErrors.argumentInvalid(
        shortName(),
        "query",
        s"'${queryOf(parameters)}'",
        s"the column $name has the reserved name of the change type column")
    }
    (shortName(), SnapshotSource.withChangeType(columns))
  }

  override def createSource(
      sqlContext: SQLContext,
      metadataPath: String,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): Source = {
    val query = queryOf(parameters)
    new SnapshotSource(
      sqlContext.sparkSession.asInstanceOf[SparkSession],
      query,
      new Path(metadataPath),
      columnsOf(sqlContext, query))
  }

  private def columnsOf(sqlContext: SQLContext, query: String): StructType =
    sqlContext.sparkSession.sql(query).schema.asNullable

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
