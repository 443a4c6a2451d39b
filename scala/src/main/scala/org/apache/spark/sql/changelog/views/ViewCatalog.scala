// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.CatalogManager.SESSION_CATALOG_NAME
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Identifier}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** ViewCatalog: finds views among the tables of the session catalog. */
class ViewCatalog(session: SparkSession) {
  private val manager = session.sessionState.catalogManager
  private val catalog = session.sessionState.catalog

  /** Returns the full name for `parts`, a name in a statement. */
  def identify(parts: Seq[String]): TableIdentifier = {
    val current = manager.currentCatalog.name()
    parts match {
      case Seq(table) if current == SESSION_CATALOG_NAME =>
        named(table, catalog.getCurrentDatabase)
      case Seq(database, table)
          if current == SESSION_CATALOG_NAME || !manager.isCatalogRegistered(database) =>
        named(table, database)
      case Seq(SESSION_CATALOG_NAME, database, table) => named(table, database)
      case _ =>
        throw analysis("CHANGELOG_VIEW_CATALOG_NOT_SUPPORTED", "view" -> parts.mkString("."))
    }
  }

  /** Returns the name as spelled in the catalog, because the view's name identifies the view's batches. */
  private def named(table: String, database: String): TableIdentifier = {
    def spelled(name: String) =
      if (session.sessionState.conf.caseSensitiveAnalysis) name else name.toLowerCase(Locale.ROOT)
    TableIdentifier(spelled(table), Some(spelled(database)), Some(SESSION_CATALOG_NAME))
  }

  /** Returns the view of this name, or fails. */
  def get(parts: Seq[String]): MaterializedView = {
    val name = identify(parts)
    find(name).getOrElse(
      throw analysis(
        "CHANGELOG_VIEW_NOT_FOUND",
        "view" -> name,
        "found" -> (if (exists(name)) "a table or view of another kind" else "nothing")))
  }

  /** Rejects a name that the catalog can't store, before anything is written. */
  def checkName(name: TableIdentifier): Unit =
    if (!name.table.matches("\\w+")) {
      throw new AnalysisException(
        "INVALID_SCHEMA_OR_RELATION_NAME",
        Map("name" -> quoteIdentifier(name.table)))
    }

  /** Returns whether the name is taken. */
  def exists(name: TableIdentifier): Boolean = catalog.tableExists(name)

  /** Returns the view of this name, if it exists. */
  def find(name: TableIdentifier): Option[MaterializedView] =
    tableOf(name).flatMap(viewIn(name, _))

  /** Returns the view of this name read by a query, without reading the logs of most other tables. */
  def findRead(name: TableIdentifier): Option[MaterializedView] =
    tableOf(name).filter(mayBeView).flatMap(viewIn(name, _))

  private def tableOf(name: TableIdentifier): Option[CatalogTable] =
    try Some(catalog.getTableMetadata(name))
    catch { case _: NoSuchTableException | _: NoSuchNamespaceException => None }

  private def viewIn(name: TableIdentifier, table: CatalogTable): Option[MaterializedView] =
    if (table.tableType == CatalogTableType.VIEW) view(table)
    else if (isDelta(table)) stored(name, new Path(table.location))
    else None

  /** Returns the view of this name, if it exists and can be read. */
  def findIfReadable(parts: Seq[String]): Option[MaterializedView] =
    Try(find(identify(parts))).toOption.flatten

  /** Returns the readable views of a database. */
  def list(database: String, pattern: String): Seq[MaterializedView] = {
    val names = catalog.listTables(database, pattern, includeLocalTempViews = false)
    catalog.getTablesByName(names).filter(mayBeView).flatMap { table =>
      Try(find(table.identifier.copy(catalog = Some(SESSION_CATALOG_NAME)))).toOption.flatten
    }
  }

  /** Excludes most tables without reading a Delta log, because a view's table has a `_changelog` folder. */
  private def mayBeView(table: CatalogTable): Boolean =
    if (table.tableType == CatalogTableType.VIEW) table.properties.contains(ViewDefinition.Kind)
    else
      isDelta(table) && Try(DeltaStorage.hasHome(session, new Path(table.location)))
        .getOrElse(true)

  private def isDelta(table: CatalogTable): Boolean =
    table.provider.exists(_.equalsIgnoreCase("delta"))

  /** Returns the views of all databases. */
  def listAll(): Seq[MaterializedView] = catalog.listDatabases().flatMap(list(_, "*"))

  private def view(table: CatalogTable): Option[MaterializedView] =
    // A Hive catalog returns the comment separately from the properties.
    ViewDefinition.fromProperties(table.properties ++ table.comment.map("comment" -> _)).map {
      definition =>
        MaterializedView(table.identifier, table.schema, definition)
    }

  /**
   * Returns the view stored in a table. The table's format may know more properties than the catalog, as Delta does.
   */
  private def stored(name: TableIdentifier, location: Path): Option[MaterializedView] = {
    val table = CatalogV2Util.loadTable(
      manager.v2SessionCatalog,
      Identifier.of(name.database.toArray, name.table))
    table.flatMap { table =>
      val properties = table.properties().asScala.toMap
      // A copy of a view's table has the view's properties, but is not a view.
      val own =
        ViewDefinition.fromProperties(properties).filter(DeltaStorage.isOf(session, _, location))
      own.map { definition =>
        val generation = definition.generation.map(DeltaStorage.currentPathOf(location, _))
        MaterializedView(
          name,
          CatalogV2Util.v2ColumnsToStructType(table.columns()),
          definition.copy(generation = generation))
      }
    }
  }
}

/**
 * MaterializedView: the name, the columns and the definition of a materialized view or streaming table.
 *
 * @param layout
 *   the partitioning of a table to be created. An existing table knows the partitioning.
 */
case class MaterializedView(
    name: TableIdentifier,
    schema: StructType,
    definition: ViewDefinition,
    layout: Seq[Transform] = Nil) {

  /** Returns the view's name for use in statements. */
  def sql: String = name.quotedString

  /** Returns whether the view is a Delta table with a change data feed. */
  def isDelta: Boolean = definition.provider.equalsIgnoreCase("delta")

  /** Returns whether the view's first columns have the names and types of another view's columns. */
  def beginsWithColumnsOf(other: MaterializedView): Boolean = columns.startsWith(other.columns)

  private def columns: Seq[(String, DataType)] =
    schema.map(field => field.name -> field.dataType)

  /** Returns the name of the view's query. */
  def queryName: String = s"view ${name.unquotedString}"
}
