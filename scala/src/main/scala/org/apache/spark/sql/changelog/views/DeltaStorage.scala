// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.types.StructType

/**
 * A Delta table that each batch is merged into, once: Delta notes batches in the commits that write
 * them. Its change data feed is on, so that other queries can read its changes.
 *
 * {{{
 *   <table>/_delta_log, …                  rows, and the definition among the properties
 *   <table>/_changelog/<generation>/       checkpoint
 * }}}
 */
class DeltaStorage(session: SparkSession) extends ViewStorage {
  import DeltaStorage._

  override def create(
      name: TableIdentifier,
      schema: StructType,
      definition: ViewDefinition): KeptView = {
    // the folder of a table is known before it is there, and must be empty then
    val location = new Path(session.sessionState.catalog.defaultTablePath(name))
    val generation = ViewStorage.newGeneration(new Path(location, Folder))
    val view = KeptView(name, schema, definition.copy(generation = Some(generation)))
    val properties = propertiesOf(view).map { case (key, value) =>
      s"${Literal(key).sql} = ${Literal(value).sql}"
    }
    val comment = definition.comment.map(text => s"COMMENT ${Literal(text).sql}").getOrElse("")
    session.sql(s"""
      CREATE TABLE ${view.sql} (${schema.toDDL}) USING delta $comment
      TBLPROPERTIES (${properties.mkString(", ")})""")
    view
  }

  override def sink(view: KeptView): (String, Map[String, String]) =
    ("changelog-table", Map("table" -> view.sql, "countRows" -> "true"))

  override def stagingSink(view: KeptView): (String, Map[String, String]) = {
    val path = view.definition.rows.toString
    ("changelog-table", Map("path" -> path, "countRows" -> "true", "createTable" -> "true"))
  }

  override def staged(view: KeptView): Option[DataFrame] = {
    val path = view.definition.rows
    val files = path.getFileSystem(session.sessionState.newHadoopConf())
    if (files.exists(path)) Some(session.read.format("delta").load(path.toString)) else None
  }

  /** One commit of Delta's. */
  override def replace(view: KeptView, rows: DataFrame): Unit = {
    val names = rows.columns.map(name => rows.col(s"`${name.replace("`", "``")}`")).toSeq
    val writer = rows.select(names: _*).writeTo(view.sql).using("delta")
    propertiesOf(view)
      .foldLeft(writer) { case (writer, (key, value)) => writer.tableProperty(key, value) }
      .createOrReplace()
  }

  override def home(name: TableIdentifier): Path =
    new Path(new Path(session.sessionState.catalog.getTableMetadata(name).location), Folder)

  override def drop(view: KeptView): Unit = session.sql(s"DROP TABLE ${view.sql}")

  private def propertiesOf(view: KeptView): Map[String, String] =
    view.definition.toProperties + ("delta.enableChangeDataFeed" -> "true")
}

private object DeltaStorage {
  val Folder = "_changelog"
}
