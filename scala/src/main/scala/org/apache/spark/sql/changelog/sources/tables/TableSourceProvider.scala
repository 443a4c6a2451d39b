// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.Source
import org.apache.spark.sql.sources.{DataSourceRegister, StreamSourceProvider}
import org.apache.spark.sql.types.{StringType, StructType}

import org.apache.spark.sql.changelog.RowKind

/**
 * TableSourceProvider: the streaming source `changelog-table-changes`, by which views follow tables. The source has two
 * options:
 *   - `table`: the table's name.
 *   - `by`: `copy` to compare all rows with a copy, `changes` to read the changes from the catalog, or `snapshots` to
 *     compare snapshots of an Iceberg table. By default, the table's format decides.
 */
class TableSourceProvider extends StreamSourceProvider with DataSourceRegister {

  override def shortName(): String = TableSourceProvider.Name

  override def sourceSchema(
      sqlContext: SQLContext,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): (String, StructType) =
    (
      TableSourceProvider.Name,
      schemaOf(sqlContext, open(sqlContext, parameters, new Path("none"))))

  override def createSource(
      sqlContext: SQLContext,
      metadataPath: String,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): Source = {
    val table = open(sqlContext, parameters, new Path(metadataPath))
    new TableSource(sessionOf(sqlContext), table, schemaOf(sqlContext, table))
  }

  private def open(
      sqlContext: SQLContext,
      parameters: Map[String, String],
      folder: Path): FollowedTable =
    FollowedTables.open(sessionOf(sqlContext), parameters, folder)

  private def schemaOf(sqlContext: SQLContext, table: FollowedTable): StructType = {
    val relation = FollowedTables.lookUp(sessionOf(sqlContext), table.name)
    val columns = fromAttributes(relation.output)
    if (table.tracksOnlyInserts) columns
    else columns.add(RowKind.ChangeTypeColumnName, StringType, nullable = false)
  }

  private def sessionOf(sqlContext: SQLContext): SparkSession =
    sqlContext.sparkSession.asInstanceOf[SparkSession]
}

object TableSourceProvider {
  val Name = "changelog-table-changes"
}
