// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.command.DropTableCommand

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.views.files.SnapshotVersions
import org.apache.spark.sql.changelog.views.files.SnapshotVersions.Version
import org.apache.spark.sql.changelog.views.history.{RefreshError, RefreshHistory, RefreshReport}

/**
 * FilesStorage: stores a view of the session catalog as files, and points a Spark view to the files of the last version.
 * Readers in every session see the catalog change at once, unlike a change in a table's files.
 *
 * {{{
 *   v: SELECT * FROM parquet.`<home>/<generation>/rows/batch-9`
 * }}}
 */
class FilesStorage(session: SparkSession) extends SnapshotStorage(session) {
  private val catalog = session.sessionState.catalog

  override def create(made: MaterializedView): MaterializedView = {
    if (made.layout.nonEmpty) {
      throw analysis(
        "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
        "view" -> made.sql,
        "clause" -> "Partitioning or clustering of files that are written anew by each batch",
        "advice" -> "Leave it out, or store the view USING delta.")
    }
    val definition = made.definition
    val generation = ViewStorage.newGeneration(newHome(made.name))
    val view = made.copy(definition = definition.copy(generation = Some(generation)))
    checkStore(view)
    val path = new Path(view.definition.rows, SnapshotStorage.Initial)
    write(view, session.createDataFrame(java.util.List.of[Row](), view.schema), path)
    val comment = definition.comment.map(text => s"COMMENT ${Literal(text).sql}").getOrElse("")
    // The view has its properties from the start, because the process may end after this statement.
    val properties = ViewStorage.listed(view.definition.toProperties - "comment")
    session.sql(s"""
      CREATE VIEW ${view.sql} $comment TBLPROPERTIES ($properties)
      AS ${select(view, path)}""")
    show(view, path)
    view
  }

  /** Also records in the view's history that others have changed the text of the Spark view. */
  override protected def isUnpublished(
      view: MaterializedView,
      number: Long,
      last: Version): Boolean = {
    val altered = alteredByOthers(view)
    altered.foreach { error =>
      val failed = new RefreshReport().finished(Some(RefreshError(session, error)))
      RefreshHistory.ofView(session, view).add(failed)
    }
    altered.nonEmpty || number > version(view)
  }

  /** Compares the text of the Spark view, which `ALTER VIEW` of a session without the extension may have changed. */
  override def alteredByOthers(view: MaterializedView): Option[Throwable] = {
    val table = catalog.getTableMetadata(view.name)
    new SnapshotVersions(session, view).last
      .filter { case (number, last) =>
        number == publishedIn(table) && !table.viewText.contains(select(view, last))
      }
      .map(_ => analysis("CHANGELOG_VIEW_TEXT_CHANGED", "view" -> view.name))
  }

  /**
   * Returns the default folder of a table of this name, unless the folder contains parts of another view. The view may
   * be renamed, belong to another catalog, or be left by an interrupted drop.
   */
  private def newHome(name: TableIdentifier): Path = {
    val path = new Path(catalog.defaultTablePath(name))
    val others = Iterator.from(2).map(number => path.suffix(s"-$number"))
    (Iterator(path) ++ others).find(path => !ViewStorage.isHome(session, path)).get
  }

  /** Renames the view. Rows and checkpoint keep their folders. */
  override def rename(view: MaterializedView, to: TableIdentifier): Unit = {
    // Spark's command parses the name without quotes, and therefore rejects a number.
    session.catalog.uncacheTable(view.sql)
    catalog.renameTable(view.name, to)
  }

  override def drop(view: MaterializedView): Unit = {
    // `DROP VIEW` as a statement would drop the materialized view.
    DropTableCommand(view.name, ifExists = false, isView = true, purge = false).run(session)
    ViewStorage.deleteAll(session, view.definition.home)
  }

  override protected def publish(view: MaterializedView, number: Long, version: Version): Unit = {
    val schema = version.columns
    val text = select(view, version)
    val output = schema.fieldNames.zipWithIndex.map { case (name, index) =>
      s"view.query.out.col.$index" -> name
    }
    val table = catalog.getTableMetadata(view.name)
    val before = ViewDefinition.fromProperties(table.properties).map(_.toProperties.keySet)
    catalog.alterTable(
      table.copy(
        schema = schema,
        comment = version.properties.get("comment"),
        viewText = Some(text),
        viewOriginalText = Some(text),
        properties = table.properties -- before.getOrElse(Nil) ++
          (version.properties - "comment") ++ output +
          (SnapshotStorage.Published -> number.toString) +
          ("view.query.out.numCols" -> output.length.toString)))
  }

  override def version(view: MaterializedView): Long =
    publishedIn(catalog.getTableMetadata(view.name))

  private def publishedIn(table: CatalogTable): Long =
    table.properties.get(SnapshotStorage.Published).fold(0L)(_.toLong)

  override def writtenByOthers(
      view: MaterializedView,
      queryId: String,
      since: Option[Long]): Option[String] =
    new SnapshotVersions(session, view).writtenByOthers.map(folder => s"files into $folder")

  private def select(view: MaterializedView, version: Version): String =
    select(view.copy(schema = version.columns), new Path(version.path))

  private def select(view: MaterializedView, path: Path): String = {
    val names = view.schema.fieldNames.map(quoteIdentifier).mkString(", ")
    s"SELECT $names FROM ${view.fileFormat}.${quoteIdentifier(path.toString)}"
  }
}
