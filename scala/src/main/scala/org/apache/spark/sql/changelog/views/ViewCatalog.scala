// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.CatalogManager.SESSION_CATALOG_NAME
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Identifier}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.errors.ViewErrors

/** Finds views among the tables of the session catalog. */
class ViewCatalog(session: SparkSession) {
  private val manager = session.sessionState.catalogManager
  private val catalog = session.sessionState.catalog

  /** The full name of what a statement calls `parts`. */
  def identify(parts: Seq[String]): TableIdentifier = {
    val current = manager.currentCatalog.name()
    parts match {
      case Seq(table) if current == SESSION_CATALOG_NAME =>
        named(table, catalog.getCurrentDatabase)
      case Seq(database, table)
          if current == SESSION_CATALOG_NAME || !manager.isCatalogRegistered(database) =>
        named(table, database)
      case Seq(SESSION_CATALOG_NAME, database, table) => named(table, database)
      case _ => throw ViewErrors.catalogNotSupported(parts)
    }
  }

  /** As the catalog spells it: a view's batches are known by its name. */
  private def named(table: String, database: String): TableIdentifier = {
    def spelled(name: String) =
      if (session.sessionState.conf.caseSensitiveAnalysis) name else name.toLowerCase(Locale.ROOT)
    TableIdentifier(spelled(table), Some(spelled(database)), Some(SESSION_CATALOG_NAME))
  }

  /** The view of this name, or an error. */
  def get(parts: Seq[String]): KeptView = {
    val name = identify(parts)
    find(name).getOrElse(throw ViewErrors.notFound(name, exists(name)))
  }

  /** Refuses a name that the catalog can't store, before anything is written for it. */
  def checkName(name: TableIdentifier): Unit =
    if (!name.table.matches("\\w+")) {
      throw new AnalysisException(
        "INVALID_SCHEMA_OR_RELATION_NAME",
        Map("name" -> quoteIdentifier(name.table)))
    }

  /** Whether anything has the name. */
  def exists(name: TableIdentifier): Boolean = catalog.tableExists(name)

  /** The view of this name, if there is one. */
  def find(name: TableIdentifier): Option[KeptView] =
    if (!exists(name)) None
    else {
      val table = catalog.getTableMetadata(name)
      if (table.tableType == CatalogTableType.VIEW) view(table)
      else if (isDelta(table)) stored(name)
      else None
    }

  /** The view of this name, if there is one; none of a name that can't be read. */
  def findIfReadable(parts: Seq[String]): Option[KeptView] =
    Try(find(identify(parts))).toOption.flatten

  /** The views in a database; a table that can't be read is none. */
  def list(database: String, pattern: String): Seq[KeptView] = {
    val names = catalog.listTables(database, pattern, includeLocalTempViews = false)
    catalog.getTablesByName(names).filter(mayBeView).flatMap { table =>
      Try(find(table.identifier.copy(catalog = Some(SESSION_CATALOG_NAME)))).toOption.flatten
    }
  }

  /** Without reading the log of each Delta table: a view's has a folder of ours. */
  private def mayBeView(table: CatalogTable): Boolean =
    if (table.tableType == CatalogTableType.VIEW) table.properties.contains(ViewDefinition.Kind)
    else
      isDelta(table) && Try(DeltaStorage.hasHome(session, new Path(table.location)))
        .getOrElse(true)

  private def isDelta(table: CatalogTable): Boolean =
    table.provider.exists(_.equalsIgnoreCase("delta"))

  /** The views of all databases. */
  def listAll(): Seq[KeptView] = catalog.listDatabases().flatMap(list(_, "*"))

  private def view(table: CatalogTable): Option[KeptView] =
    // where Hive keeps the catalog, a comment is none of the properties that it gives back
    ViewDefinition.fromProperties(table.properties ++ table.comment.map("comment" -> _)).map {
      definition =>
        KeptView(table.identifier, table.schema, definition)
    }

  /** A table whose properties may be known to its format only, as Delta's are. */
  private def stored(name: TableIdentifier): Option[KeptView] = {
    val table = CatalogV2Util.loadTable(
      manager.v2SessionCatalog,
      Identifier.of(name.database.toArray, name.table))
    table.flatMap { table =>
      val properties = table.properties().asScala.toMap
      val location = new Path(catalog.getTableMetadata(name).location)
      // a copy of a view's table has its properties, but is no view
      val own =
        ViewDefinition.fromProperties(properties).filter(DeltaStorage.isOf(session, _, location))
      own.map { definition =>
        val generation = definition.generation.map(DeltaStorage.anchored(location, _))
        KeptView(
          name,
          CatalogV2Util.v2ColumnsToStructType(table.columns()),
          definition.copy(generation = generation))
      }
    }
  }
}

/**
 * A view there is: its name, its columns and what it is.
 *
 * @param layout
 *   how a table that is made for it is partitioned; of one that is there, the table
 *   knows
 */
case class KeptView(
    name: TableIdentifier,
    schema: StructType,
    definition: ViewDefinition,
    layout: Seq[Transform] = Nil) {

  /** What it is called in statements. */
  def sql: String = name.quotedString

  /** Whether it is kept as a Delta table, whose change data feed tells its changes. */
  def isDelta: Boolean = definition.provider.equalsIgnoreCase("delta")

  /** Whether its first columns have the same names and types. */
  def beginsWithColumnsOf(other: KeptView): Boolean = columns.startsWith(other.columns)

  private def columns: Seq[(String, DataType)] =
    schema.map(field => field.name -> field.dataType)

  /** What the query that keeps it is called. */
  def queryName: String = s"view ${name.unquotedString}"
}
