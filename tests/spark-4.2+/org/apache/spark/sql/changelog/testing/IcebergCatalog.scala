// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.iceberg.PartitionSpec
import org.apache.iceberg.hadoop.HadoopTables
import org.apache.iceberg.spark.SparkSchemaUtil
import org.apache.iceberg.spark.source.SparkTable

import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Tables of Apache Iceberg, each in a folder of its name below the option `home`.
 *
 * It takes the place of Iceberg's own catalogs, which Spark 4.2 can't load: they need
 * `org.apache.spark.sql.connector.catalog.View` to be an interface, as it was before.
 */
class IcebergCatalog extends TableCatalog {
  private var catalog: String = _
  private var home: String = _
  private lazy val tables =
    new HadoopTables(SparkSession.active.sessionState.newHadoopConf())

  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit = {
    catalog = name
    home = options.get("home")
  }

  override def name(): String = catalog

  private def folder(table: Identifier): String = s"$home/${table.name}"

  override def loadTable(table: Identifier): Table =
    if (!tables.exists(folder(table))) throw new NoSuchTableException(table)
    else new SparkTable(tables.load(folder(table)), false)

  override def createTable(table: Identifier, info: TableInfo): Table = {
    val schema = SparkSchemaUtil.convert(info.schema())
    new SparkTable(tables.create(schema, PartitionSpec.unpartitioned(), folder(table)), false)
  }

  override def dropTable(table: Identifier): Boolean = tables.dropTable(folder(table))

  override def listTables(namespace: Array[String]): Array[Identifier] = Array.empty

  override def alterTable(table: Identifier, changes: TableChange*): Table =
    throw new UnsupportedOperationException("alterTable")

  override def renameTable(from: Identifier, to: Identifier): Unit =
    throw new UnsupportedOperationException("renameTable")
}
