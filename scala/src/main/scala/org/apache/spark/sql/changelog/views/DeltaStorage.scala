// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.command.DropTableCommand
import org.apache.spark.sql.functions.{col, lit}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrameWriterV2, Row}

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
      s"${quoteLiteral(key)} = ${quoteLiteral(value)}"
    }
    val comment = definition.comment.map(text => s"COMMENT ${quoteLiteral(text)}").getOrElse("")
    removeRemains(location)
    session.sql(s"""
      CREATE TABLE ${view.sql} (${schema.toDDL}) USING delta $comment
      TBLPROPERTIES (${properties.mkString(", ")})""")
    view
  }

  /**
   * Deletes the empty table of a process that has ended before the catalog knew of it, or before the
   * table's log did. Delta would refuse to make another one in its place.
   */
  private def removeRemains(location: Path): Unit = {
    val files = location.getFileSystem(session.sessionState.newHadoopConf())
    val log = new Path(location, LogFolder)
    if (files.exists(log)) {
      val isTable = files.listStatus(log).exists(_.getPath.getName.matches("\\d+\\..*"))
      val isRemains =
        if (isTable) isUntouchedView(location)
        else files.listStatus(location).forall(_.getPath.getName == LogFolder)
      if (isRemains) files.delete(location, true)
    }
  }

  private def isUntouchedView(location: Path): Boolean = {
    val table = s"delta.${quoteIdentifier(location.toString)}"
    val properties = session.sql(s"SHOW TBLPROPERTIES $table").collect()
    properties.exists(_.getString(0) == ViewDefinition.Kind) &&
    session.sql(s"DESCRIBE HISTORY $table").count() == 1
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

  override def replace(view: KeptView, rows: DataFrame, anew: Boolean): Unit = {
    val names = rows.columns.map(name => rows.col(quoteIdentifier(name))).toSeq
    val writer = rows.select(names: _*).writeTo(view.sql)
    if (anew) {
      propertiesOf(view)
        .foldLeft(writer.using("delta")) { case (writer, (key, value)) =>
          writer.tableProperty(key, value)
        }
        .createOrReplace()
    } else overwrite(view, writer)
  }

  /**
   * Replaces all rows of the same table, whose changes others may be reading. The generation they
   * are of is noted in the same commit, and in the properties afterwards: whoever comes in between
   * looks there.
   */
  private def overwrite(view: KeptView, writer: DataFrameWriterV2[Row]): Unit = {
    val generation = view.definition.generation.get
    set(view, ViewDefinition.Pending -> generation)
    session.conf.set(CommitNote, generation)
    try writer.overwrite(lit(true))
    finally session.conf.unset(CommitNote)
    settle(view)
  }

  override def settle(view: KeptView): Unit = {
    val pending = quoteLiteral(ViewDefinition.Pending)
    val properties = session.sql(s"SHOW TBLPROPERTIES ${view.sql}")
    if (!properties.where(col("key") === ViewDefinition.Pending).isEmpty) {
      set(view, ViewDefinition.Generation -> view.definition.generation.get)
      session.sql(s"ALTER TABLE ${view.sql} UNSET TBLPROPERTIES ($pending)")
    }
  }

  private def set(view: KeptView, property: (String, String)): Unit = {
    val (key, value) = property
    session.sql(s"""
      ALTER TABLE ${view.sql}
      SET TBLPROPERTIES (${quoteLiteral(key)} = ${quoteLiteral(value)})""")
    ()
  }

  private def quoteLiteral(text: String): String = Literal(text).sql

  override def home(name: TableIdentifier): Path =
    new Path(new Path(session.sessionState.catalog.getTableMetadata(name).location), Folder)

  override def drop(view: KeptView): Unit = {
    // the statement means more where it names a view
    DropTableCommand(view.name, ifExists = false, isView = false, purge = false).run(session)
    ()
  }

  private def propertiesOf(view: KeptView): Map[String, String] =
    view.definition.toProperties + ("delta.enableChangeDataFeed" -> "true")
}

object DeltaStorage {
  private val Folder = "_changelog"
  private val LogFolder = "_delta_log"
  private val CommitNote = "spark.databricks.delta.commitInfo.userMetadata"

  /** Whether the rows of a generation that was about to be shown have been written. */
  def isWritten(session: SparkSession, view: TableIdentifier, generation: String): Boolean = {
    val history = session.sql(s"DESCRIBE HISTORY ${view.quotedString}")
    !history.where(col("userMetadata") === generation).isEmpty
  }
}
