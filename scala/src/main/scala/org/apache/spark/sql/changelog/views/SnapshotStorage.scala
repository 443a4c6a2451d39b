// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.command.DropTableCommand
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.views.files.{FilesSinkProvider, Snapshots}

/**
 * Files that can't be changed in place. Each batch writes all rows anew, and then a view of Spark's
 * shows the new files: a single step in the catalog, which readers in any session see at once,
 * unlike the files of a table.
 *
 * {{{
 *   v: SELECT * FROM parquet.`<home>/<generation>/rows/batch-9`
 *   <home>/<generation>/checkpoint
 *   <home>/<generation>/rows/batch-7, batch-9
 * }}}
 */
class SnapshotStorage(session: SparkSession) extends ViewStorage {
  private val catalog = session.sessionState.catalog

  override def create(
      name: TableIdentifier,
      schema: StructType,
      definition: ViewDefinition): KeptView = {
    val generation = ViewStorage.newGeneration(home(name))
    val view = KeptView(name, schema, definition.copy(generation = Some(generation)))
    val path = new Path(view.definition.rows, SnapshotStorage.Initial)
    write(view, session.createDataFrame(java.util.List.of[Row](), schema), path)
    val comment = definition.comment.map(text => s"COMMENT ${Literal(text).sql}").getOrElse("")
    // it says from the first what it is, for the process may end here
    val properties = (view.definition.toProperties - "comment").map { case (key, value) =>
      s"${Literal(key).sql} = ${Literal(value).sql}"
    }
    session.sql(s"""
      CREATE VIEW ${view.sql} $comment TBLPROPERTIES (${properties.mkString(", ")})
      AS ${select(view, path)}""")
    show(view, path)
    view
  }

  override def sink(view: KeptView): (String, Map[String, String]) = {
    val (format, options) = stagingSink(view)
    (format, options + ("view" -> view.sql))
  }

  override def stagingSink(view: KeptView): (String, Map[String, String]) = (
    classOf[FilesSinkProvider].getName,
    Map("path" -> view.definition.rows.toString, "provider" -> view.definition.provider))

  override def staged(view: KeptView): Option[DataFrame] =
    latest(view).map(path => session.read.format(view.definition.provider).load(path.toString))

  override def replace(view: KeptView, rows: DataFrame, anew: Boolean): Unit = {
    val path = latest(view).getOrElse {
      val path = new Path(view.definition.rows, SnapshotStorage.Initial)
      write(view, rows, path)
      path
    }
    show(view, path)
  }

  /** What is shown is changed in one step. */
  override def settle(view: KeptView): Unit = ()

  override def home(name: TableIdentifier): Path = new Path(catalog.defaultTablePath(name))

  override def drop(view: KeptView): Unit = {
    // the statement means more where it names a view
    DropTableCommand(view.name, ifExists = false, isView = true, purge = false).run(session)
    ViewStorage.deleteAll(session, view.definition.folder.getParent)
  }

  /** Lets the view show the rows in a folder, and remember what `view` says. */
  def show(view: KeptView, path: Path): Unit = {
    val table = catalog.getTableMetadata(view.name)
    val text = select(view, path)
    val output = view.schema.fieldNames.zipWithIndex.map { case (name, index) =>
      s"view.query.out.col.$index" -> name
    }
    catalog.alterTable(
      table.copy(
        schema = view.schema,
        comment = view.definition.comment,
        viewText = Some(text),
        viewOriginalText = Some(text),
        properties = table.properties.filterNot(_._1.startsWith("changelog.")) ++
          view.definition.toProperties ++ output +
          ("view.query.out.numCols" -> output.length.toString)))
  }

  private def latest(view: KeptView): Option[Path] = {
    val snapshots = new Snapshots(session, view.definition.rows)
    snapshots.latest.map(snapshots.path)
  }

  private def write(view: KeptView, rows: DataFrame, path: Path): Unit =
    rows.write.mode("overwrite").format(view.definition.provider).save(path.toString)

  private def select(view: KeptView, path: Path): String = {
    val names = view.schema.fieldNames.map(quoteIdentifier).mkString(", ")
    s"SELECT $names FROM ${view.definition.provider}.${quoteIdentifier(path.toString)}"
  }
}

object SnapshotStorage {

  /** Where rows lie that no batch has written. */
  private val Initial = "initial"
}
