// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try}

import org.apache.hadoop.fs.Path

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.util.{StringUtils, quoteIdentifier}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.CatalogManager.SESSION_CATALOG_NAME
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.connector.catalog.{
  CatalogManager, CatalogV2Util, Identifier, LookupCatalog, Table, TableCatalog
}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.views.history.RefreshError

/** ViewCatalog: finds views among the tables of the session catalog and of other catalogs. */
class ViewCatalog(session: SparkSession) extends LookupCatalog {

  override protected val catalogManager: CatalogManager = session.sessionState.catalogManager
  private val catalog = session.sessionState.catalog

  /** Returns the full name for `parts`, a name in a statement. */
  def identify(parts: Seq[String]): TableIdentifier = parts match {
    case CatalogAndIdentifier(owner, name) if name.namespace.length == 1 =>
      if (CatalogV2Util.isSessionCatalog(owner)) named(name.name, name.namespace.head)
      else TableIdentifier(name.name, Some(name.namespace.head), Some(owner.name))
    case _ =>
      throw CatalogStorage.notSupported(
        parts.mkString("."),
        "the name of a view is a catalog, a database and a table")
  }

  /** Returns the catalog of a view, and the view's name there. */
  def ownerOf(view: TableIdentifier): (TableCatalog, Identifier) = (
    catalogManager.catalog(view.catalog.get).asTableCatalog,
    Identifier.of(view.database.toArray, view.table))

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
    if (MaterializedView.isInSessionCatalog(name) && !name.table.matches("\\w+")) {
      throw new AnalysisException(
        "INVALID_SCHEMA_OR_RELATION_NAME",
        Map("name" -> quoteIdentifier(name.table)))
    }

  /** Returns whether the name is taken. */
  def exists(name: TableIdentifier): Boolean =
    if (MaterializedView.isInSessionCatalog(name)) catalog.tableExists(name)
    else tableElsewhere(name).nonEmpty

  /** Returns the view of this name, if it exists. */
  def find(name: TableIdentifier): Option[MaterializedView] =
    if (MaterializedView.isInSessionCatalog(name)) tableOf(name).flatMap(viewIn(name, _))
    else {
      invalidate(name)
      findRead(name)
    }

  /** Returns the view of this name read by a query, without reading the logs of most other tables. */
  def findRead(name: TableIdentifier): Option[MaterializedView] =
    if (MaterializedView.isInSessionCatalog(name))
      tableOf(name).filter(mayBeView).flatMap(viewIn(name, _))
    else
      tableElsewhere(name).flatMap(table =>
        reading(name, isView = true)(CatalogStorage.viewIn(name, table)))

  private def tableElsewhere(name: TableIdentifier): Option[Table] = {
    val (owner, table) = ownerOf(name)
    CatalogV2Util.loadTable(owner, table)
  }

  /** Makes the session see commits by others, because a catalog may keep loaded tables for some time. */
  def invalidate(name: TableIdentifier): Unit =
    if (!MaterializedView.isInSessionCatalog(name)) {
      val (owner, table) = ownerOf(name)
      owner.invalidateTable(table)
    }

  private def tableOf(name: TableIdentifier): Option[CatalogTable] =
    try Some(catalog.getTableMetadata(name))
    catch { case _: NoSuchTableException | _: NoSuchNamespaceException => None }

  private def viewIn(name: TableIdentifier, table: CatalogTable): Option[MaterializedView] =
    if (table.tableType == CatalogTableType.VIEW) reading(name, isView = true)(view(table))
    else if (isDelta(table)) {
      val location = new Path(table.location)
      def isView = Try(DeltaStorage.hasHome(session, location)).getOrElse(true)
      reading(name, isView)(stored(name, location))
    } else None

  /** Fails with the name of the view if the view's record is damaged, missing, or written by a later version. */
  private def reading(name: TableIdentifier, isView: => Boolean)(
      read: => Option[MaterializedView]): Option[MaterializedView] =
    try {
      val view = read
      // Fails without a generation.
      view.foreach(_.definition.folder)
      view
    } catch {
      case NonFatal(error) if isView =>
        val reason = RefreshError(session, error)
        throw analysis("CHANGELOG_VIEW_UNREADABLE", error, "view" -> name, "reason" -> reason)
    }

  private def isUnreadable(error: Throwable): Boolean = error match {
    case known: SparkThrowable => known.getCondition == "CHANGELOG_VIEW_UNREADABLE"
    case _ => false
  }

  /** Returns the view of this name, or None for anything else, readable or not. Fails for an unreadable view. */
  def findIfReadable(parts: Seq[String]): Option[MaterializedView] =
    try {
      val name = identify(parts)
      if (MaterializedView.isInSessionCatalog(name)) find(name) else findRead(name)
    } catch { case NonFatal(error) if !isUnreadable(error) => None }

  /** Returns the readable views of a database, by default of the current one. */
  def list(database: Seq[String], pattern: String): Seq[MaterializedView] =
    listWithErrors(database, pattern).flatMap(_._2.toOption)

  /** Returns the views of a database, by default of the current one. An unreadable view comes with its error. */
  def listWithErrors(
      database: Seq[String],
      pattern: String): Seq[(TableIdentifier, Try[MaterializedView])] = {
    val any = identify(database :+ "_")
    val names =
      if (MaterializedView.isInSessionCatalog(any)) {
        val names =
          catalog.listTables(any.database.get, pattern, includeLocalTempViews = false)
        catalog
          .getTablesByName(names)
          .filter(mayBeView)
          .map(_.identifier.copy(catalog = Some(SESSION_CATALOG_NAME)))
      } else {
        val tables = ownerOf(any)._1.listTables(any.database.toArray).toSeq.map(_.name)
        StringUtils.filterPattern(tables, pattern).map(table => any.copy(table = table))
      }
    names.flatMap { name =>
      Try(find(name)) match {
        case Success(found) => found.map(view => view.name -> Success(view))
        case Failure(error) => Option.when(isUnreadable(error))(name -> Failure(error))
      }
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

  /** Returns the views of all databases of the session catalog. Other catalogs may hold many tables. */
  def listAll(): Seq[MaterializedView] = listAllWithErrors().flatMap(_._2.toOption)

  /** Returns the views of all databases of the session catalog. An unreadable view comes with its error. */
  def listAllWithErrors(): Seq[(TableIdentifier, Try[MaterializedView])] =
    catalog
      .listDatabases()
      .flatMap(name => listWithErrors(Seq(SESSION_CATALOG_NAME, name), "*"))

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
      catalogManager.v2SessionCatalog,
      Identifier.of(name.database.toArray, name.table))
    table.flatMap { table =>
      val properties = table.properties().asScala.toMap
      // A copy of a view's table has the view's properties, but is not a view.
      val own =
        ViewDefinition.fromProperties(properties).filter(DeltaStorage.isOf(session, _, location))
      if (own.isEmpty) DeltaStorage.checkLog(session, location)
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
  def isDelta: Boolean =
    isInSessionCatalog && definition.provider.equalsIgnoreCase("delta")

  /** Returns whether the view is an Iceberg table. */
  def isIceberg: Boolean =
    !isInSessionCatalog && definition.provider.equalsIgnoreCase("iceberg")

  /** The format of the view's rows in files. */
  def fileFormat: String =
    if (isInSessionCatalog && !isDelta) definition.provider else "parquet"

  def isInSessionCatalog: Boolean = MaterializedView.isInSessionCatalog(name)

  /** Returns whether the view's first columns have the names and types of another view's columns. */
  def beginsWithColumnsOf(other: MaterializedView): Boolean = columns.startsWith(other.columns)

  private def columns: Seq[(String, DataType)] =
    schema.map(field => field.name -> field.dataType)

  /** Returns the name for people, without the session catalog. */
  def shownName: String =
    name.nameParts.drop(if (isInSessionCatalog) 1 else 0).mkString(".")

  /** Returns the name of the view's query. */
  def queryName: String = s"view ${name.unquotedString}"
}

object MaterializedView {
  def isInSessionCatalog(name: TableIdentifier): Boolean =
    name.catalog.forall(_ == SESSION_CATALOG_NAME)
}
