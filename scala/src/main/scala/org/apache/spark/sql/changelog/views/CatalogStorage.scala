// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.UUID

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.connector.catalog.TableCapability._
import org.apache.spark.sql.connector.catalog.{
  CatalogV2Util, Table, TableCatalog, TableChange, TableInfo
}
import org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.types.{DataType, StructField, StructType}

import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.connectors.iceberg.IcebergRelation
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.views.files.SnapshotVersions.Version

/**
 * CatalogStorage: stores a view in a table of a catalog other than the session catalog. The versions of the view are
 * files, as in [[SnapshotStorage]]. Publishing a version replaces all rows of the table, and then the definition among
 * the table's properties.
 *
 * {{{
 *   cat.db.v                                rows of the last version, and the definition
 *   <location of cat.db.v>/_changelog/      versions, and generations with checkpoint and rows
 *   <warehouse>/_changelog/<id>/            the same, for a table without a location
 * }}}
 *
 * The versions decide if the process ends between both steps: the next statement publishes the last version again.
 */
class CatalogStorage(session: SparkSession) extends SnapshotStorage(session) {
  import CatalogStorage._

  private val views = new ViewCatalog(session)

  override def create(made: MaterializedView): MaterializedView = {
    val (catalog, name) = views.ownerOf(made.name)
    if (catalog.isInstanceOf[JDBCTableCatalog])
      throw notSupported(
        made.sql,
        "tables of a JDBC catalog have no properties for the view's definition")
    val warehouse = new Path(session.sessionState.conf.warehousePath, Folder)
    val home = new Path(warehouse, UUID.randomUUID.toString)
    val definition = made.definition.copy(generation = Some(ViewStorage.newGeneration(home)))
    // The table has the definition from the start, because the process may end after this statement.
    val properties = definition.toProperties + (Name -> nameOf(made.name)) ++
      Option.when(definition.provider != FormatOfCatalog)(
        TableCatalog.PROP_PROVIDER -> definition.provider)
    val info = new TableInfo.Builder()
      .withColumns(CatalogV2Util.structTypeToV2Columns(made.schema))
      .withPartitions(made.layout.toArray)
      .withProperties(CatalogV2Util.withDefaultOwnership(properties).asJava)
      .build()
    catalog.createTable(name, info)
    try {
      val view = check(made)
      checkStore(view)
      val path = new Path(view.definition.rows, SnapshotStorage.Initial)
      write(view, session.createDataFrame(java.util.List.of[Row](), view.schema), path)
      show(view, path)
      view
    } catch {
      case error: Throwable =>
        try {
          // Another process may have created another view of the name meanwhile.
          val found = propertiesOf(made).get(ViewDefinition.Generation)
          if (found.forall(definition.generation.contains)) catalog.dropTable(name)
          ViewStorage.deleteAll(session, home)
        } catch { case NonFatal(other) => error.addSuppressed(other) }
        throw error
    }
  }

  /** Returns the view of a new table. Rejects a table that lacks an ability that views need. */
  private def check(made: MaterializedView): MaterializedView = {
    def refuse(reason: String) = throw notSupported(made.sql, reason)
    val table = tableOf(made)
    val abilities = table.capabilities.asScala
    if (!abilities(BATCH_READ)) refuse("the catalog's tables cannot be read")
    if (!abilities.exists(Set(BATCH_WRITE, V1_BATCH_WRITE)) ||
      !abilities.exists(Set(TRUNCATE, OVERWRITE_BY_FILTER)))
      refuse("the rows of the catalog's tables cannot be replaced")
    IcebergRelation.whyNoView(table).foreach(refuse)
    try alter(made, Seq(TableChange.setProperty(SnapshotStorage.Published, "0")))
    catch { case _: UnsupportedOperationException => refuse("the catalog cannot alter tables") }
    val view = views
      .find(made.name)
      .getOrElse(refuse("the catalog drops properties of tables, and so the view's definition"))
    columnsOf(table).zip(made.schema).foreach { case (found, asked) =>
      if (!isSame(found, asked))
        refuse(
          s"the catalog stores the column ${asked.name} as ${found.dataType.sql} instead of " +
            s"${asked.dataType.sql}; CAST the column in the query")
    }
    view
  }

  /** Changes the table's columns first. If the catalog refuses, the view stays as is. */
  override def show(view: MaterializedView, path: Path): Unit = {
    Fence.check("columns")
    prepare(view, columnChanges(view, view.schema))
    super.show(view, path)
  }

  /** Changes the columns before the version is recorded. */
  protected def prepare(view: MaterializedView, columns: Seq[TableChange]): Unit =
    // The rows must be written again, even if the process ends now.
    if (columns.nonEmpty) alter(view, columns :+ TableChange.removeProperty(Rows))

  /** Returns the changes that give the table other columns. */
  private def columnChanges(view: MaterializedView, schema: StructType): Seq[TableChange] = {
    val table = tableOf(view)
    val now = columnsOf(table)
    val numSame = now.zip(schema).takeWhile { case (one, other) => isSame(one, other) }.size
    val (gone, added) = (now.drop(numSame), schema.drop(numSame))
    val partitioned = table.partitioning.flatMap(_.references).map(_.fieldNames.head).toSet
    gone.map(_.name).find(partitioned).foreach { column =>
      throw analysis(
        "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
        "view" -> view.sql,
        "clause" -> s"Another column before the partition column $column",
        "advice" -> "Add columns at the end, or drop the view and create it again.")
    }
    gone.map(field => TableChange.deleteColumn(Array(field.name), false)) ++
      added.map(field =>
        TableChange
          .addColumn(Array(field.name), field.dataType, true, field.getComment().orNull))
  }

  override protected def isUnpublished(
      view: MaterializedView,
      number: Long,
      last: Version): Boolean =
    !Map(SnapshotStorage.Published -> number.toString, Rows -> last.path).toSet
      .subsetOf(propertiesOf(view).toSet)

  override protected def publish(view: MaterializedView, number: Long, version: Version): Unit = {
    val columns = columnChanges(view, version.columns)
    // Rows in other columns must be written again.
    val properties = if (columns.isEmpty) propertiesOf(view) else propertiesOf(view) - Rows
    val isWritten = properties.get(Rows).contains(version.path)
    val after = version.properties +
      (SnapshotStorage.Published -> number.toString) + (Rows -> version.path)
    val before =
      ViewDefinition.fromProperties(properties).fold(Set.empty[String])(_.toProperties.keySet)
    val set = after.toSeq.diff(properties.toSeq).map { case (key, value) =>
      TableChange.setProperty(key, value)
    }
    val unset = (before -- after.keySet).toSeq.map(TableChange.removeProperty)
    commit(view, columns, if (isWritten) None else Some(version), set ++ unset)
  }

  /** Changes the columns, then the rows, then the definition. */
  protected def commit(
      view: MaterializedView,
      columns: Seq[TableChange],
      rows: Option[Version],
      properties: Seq[TableChange]): Unit = {
    prepare(view, columns)
    rows.foreach { version =>
      RefuseViewWrites.allow(session)(
        rowsOf(view, version).writeTo(view.sql).overwrite(lit(true)))
    }
    if (properties.nonEmpty) alter(view, properties)
  }

  protected def rowsOf(view: MaterializedView, version: Version): DataFrame =
    session.read.schema(version.columns).format(view.fileFormat).load(version.path)

  override def version(view: MaterializedView): Long =
    propertiesOf(view).get(SnapshotStorage.Published).fold(0L)(_.toLong)

  override def rename(view: MaterializedView, to: TableIdentifier): Unit = {
    session.catalog.uncacheTable(view.sql)
    val (catalog, name) = views.ownerOf(view.name)
    // The table is a view by either name, because the process may end in between.
    alter(view, Seq(TableChange.setProperty(NextName, nameOf(to))))
    try catalog.renameTable(name, views.ownerOf(to)._2)
    catch {
      case error: Throwable =>
        alter(view, Seq(TableChange.removeProperty(NextName)))
        throw error
    }
    alter(
      view.copy(name = to),
      Seq(TableChange.setProperty(Name, nameOf(to)), TableChange.removeProperty(NextName)))
  }

  override def drop(view: MaterializedView): Unit = {
    session.catalog.uncacheTable(view.sql)
    val (catalog, name) = views.ownerOf(view.name)
    // Some catalogs would leave the files.
    try catalog.purgeTable(name)
    catch { case _: UnsupportedOperationException => catalog.dropTable(name) }
    ViewStorage.deleteAll(session, view.definition.home)
  }

  protected def tableOf(view: MaterializedView): Table = {
    val (catalog, name) = views.ownerOf(view.name)
    catalog.invalidateTable(name)
    catalog.loadTable(name)
  }

  private def propertiesOf(view: MaterializedView): Map[String, String] =
    tableOf(view).properties.asScala.toMap

  private def alter(view: MaterializedView, changes: Seq[TableChange]): Unit = {
    val (catalog, name) = views.ownerOf(view.name)
    catalog.alterTable(name, changes: _*)
    ()
  }
}

object CatalogStorage {

  /** The format of a table created without `USING`. */
  val FormatOfCatalog = "default"

  private val Folder = "_changelog"

  /** The property with the folder of the published rows. */
  private val Rows = ViewDefinition.Prefix + "rows"

  /** The property with the view's name. A copy of the table has another name, and is no view. */
  private val Name = ViewDefinition.Prefix + "name"

  /** The property with the name that a view gets. */
  private val NextName = ViewDefinition.Prefix + "nextName"

  /** Returns a name without the catalog, which has another name in other sessions. */
  private def nameOf(view: TableIdentifier): String = view.copy(catalog = None).quotedString

  /** Returns the view stored in a table, if any. */
  def viewIn(name: TableIdentifier, table: Table): Option[MaterializedView] = {
    val properties = table.properties.asScala.toMap
    val location = properties.get(TableCatalog.PROP_LOCATION).map(new Path(_))
    val names = Seq(Name, NextName).flatMap(properties.get)
    def isCopy = names.nonEmpty && !names.exists(_.equalsIgnoreCase(nameOf(name))) ||
      IcebergRelation.isCopied(table)
    ViewDefinition.fromProperties(properties).filterNot(_ => isCopy).map { definition =>
      val generation =
        for (path <- definition.generation; folder <- location)
          yield DeltaStorage.currentPathOf(folder, path)
      val known = definition.copy(
        generation = generation.orElse(definition.generation),
        provider = properties.get(TableCatalog.PROP_PROVIDER).getOrElse(definition.provider))
      MaterializedView(name, columnsOf(table), known)
    }
  }

  def notSupported(view: String, reason: String): Throwable =
    analysis("CHANGELOG_VIEW_CATALOG_NOT_SUPPORTED", "view" -> view, "reason" -> reason)

  private def columnsOf(table: Table): StructType =
    CatalogV2Util.v2ColumnsToStructType(table.columns)

  private def isSame(one: StructField, other: StructField): Boolean =
    one.name == other.name && DataType.equalsIgnoreNullability(one.dataType, other.dataType)
}
