// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.FileNotFoundException

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.{Literal, RowOrdering}
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.command.DropTableCommand
import org.apache.spark.sql.functions.{col, lit}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.connectors.delta.{
  Delta, DeltaCommits, DeltaConflicts, DeltaProperties
}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.sinks.table.{EmptyPartitions, TableSink}
import org.apache.spark.sql.changelog.sinks.{SinkInput, SinkOptions}

/**
 * DeltaStorage: stores a view in a Delta table and merges each batch into the table once. Delta records the batch in
 * the batch's commit. The change data feed is on for readers of the changes.
 *
 * {{{
 *   <table>/_delta_log, …                  rows, and the definition among the properties
 *   <table>/_changelog/<generation>/       checkpoint
 * }}}
 */
class DeltaStorage(session: SparkSession) extends ViewStorage {
  import DeltaStorage._

  override def create(made: MaterializedView): MaterializedView = {
    val definition = made.definition
    // The table's folder is known before the table exists, and must be empty then.
    val location = new Path(session.sessionState.catalog.defaultTablePath(made.name))
    val generation = ViewStorage.newGeneration(new Path(location, Folder))
    val view = made.copy(definition = definition.copy(generation = Some(generation)))
    val layout = new DeltaLayout(view).check()
    val comment = definition.comment.map(text => s"COMMENT ${quoteLiteral(text)}").getOrElse("")
    removeRemains(view, location)
    session.sql(s"""
      CREATE TABLE ${view.sql} (${view.schema.toDDL}) USING delta $comment
      ${layout.sql}
      TBLPROPERTIES (${ViewStorage.listed(propertiesOf(view))})""")
    view
  }

  /**
   * Deletes the empty table of a process that ended before the catalog or the table's log knew of the table. Also
   * deletes the lease left by a view dropped meanwhile. Delta would refuse to create a table over such remains.
   *
   * Another process may be creating the view, and the table may appear in the catalog until the time of a lease is
   * over.
   */
  private def removeRemains(view: MaterializedView, location: Path): Unit = {
    val files = location.getFileSystem(session.sessionState.newHadoopConf())
    def names(folder: Path) = files.listStatus(folder).map(_.getPath.getName).toSeq
    val log = new Path(location, Delta.LogFolder)
    val own = new Path(location, Folder)
    if (files.exists(own) && names(location) == Seq(Folder) && names(own) == Seq(
        ViewLease.Folder)) {
      files.delete(location, true)
    } else if (files.exists(log)) {
      val isTable = names(log).exists(_.matches("\\d+\\..*"))
      val isRemains =
        if (isTable) isUntouchedView(location)
        else names(location).forall(_ == Delta.LogFolder)
      if (isRemains) {
        def isMade = session.sessionState.catalog.tableExists(view.name)
        if (ViewLease.waitsFor(session)(isMade))
          throw analysis("CHANGELOG_VIEW_EXISTS", "view" -> view.name)
        files.delete(location, true)
      }
    }
  }

  private def isUntouchedView(location: Path): Boolean = {
    val table = s"delta.${quoteIdentifier(location.toString)}"
    val properties = session.sql(s"SHOW TBLPROPERTIES $table").collect()
    properties.exists(_.getString(0) == ViewDefinition.Kind) &&
    session.sql(s"DESCRIBE HISTORY $table").count() == 1
  }

  override def sink(view: MaterializedView): (String, Map[String, String]) =
    ("changelog-table", Map("table" -> view.sql, "countRows" -> "true"))

  override def check(view: MaterializedView, input: SinkInput): Unit = {
    val (format, options) = sink(view)
    new TableSink(new SinkOptions(format, options)).accept(input)
    ()
  }

  override def stagingSink(view: MaterializedView): (String, Map[String, String]) = {
    val path = view.definition.rows.toString
    ("changelog-table", Map("path" -> path, "countRows" -> "true", "createTable" -> "true"))
  }

  /** Returns whether rows with these columns can be compared with a table's rows. */
  private def isComparable(columns: StructType): Boolean =
    columns.forall(field => RowOrdering.isOrderable(field.dataType))

  override def snapshotsOf(view: MaterializedView, queryId: String): LazyList[ViewSnapshot] = {
    val generation = view.definition.folder.getName
    val staged = view.definition.rows
    val files = staged.getFileSystem(session.sessionState.newHadoopConf())
    new DeltaBatches(session, view.sql, generation, queryId).shown {
      // For a path below a table, Delta would read the enclosing table.
      if (!files.exists(new Path(staged, Delta.LogFolder))) LazyList.empty
      else {
        val table = s"delta.${quoteIdentifier(staged.toString)}"
        new DeltaBatches(session, table, generation, queryId).written
      }
    }
  }

  override def stage(view: MaterializedView, rows: DataFrame, batch: Long): DataFrame = rows

  override def staged(view: MaterializedView): Option[DataFrame] = {
    val path = view.definition.rows
    val files = path.getFileSystem(session.sessionState.newHadoopConf())
    if (files.exists(path)) Some(session.read.format("delta").load(path.toString)) else None
  }

  /**
   * Replaces all rows, or the differing rows only, in place, because queries may read the table's changes. The same
   * commit records the generation and changes the view's definition.
   */
  override def replace(
      view: MaterializedView,
      rows: DataFrame,
      how: Replacement,
      queryId: Option[String]): Unit = {
    val selected = columnsOf(view, rows)
    val partitions = how match {
      case Replacement.RecreateTable => new DeltaLayout(view).partitions
      case _ => EmptyPartitions.columnsOf(session.table(view.sql))
    }
    val shown = EmptyPartitions.refuse(selected, partitions, view.sql)
    // rows that stay must not be those of another writer
    val since = if (how.replacesAllRows) None else lastVersion(view)
    how match {
      case Replacement.RecreateTable => recreateTable(view, shown, queryId)
      // An empty table differs in all rows.
      case Replacement.DifferingRows(key)
          if isComparable(shown.schema) && !session.table(view.sql).isEmpty =>
        val difference = new DeltaDifference(rows.sparkSession, view.sql, shown, key)
        inPlace(view, rows.sparkSession, since = since) {
          if (difference.isEmpty) recordGeneration(view, difference.added) else difference.merge()
        }
      case Replacement.RowsWhere(condition, key) =>
        val writing = rows.sparkSession
        if (!isComparable(shown.schema)) {
          inPlace(view, writing, queryId, since)(shown.writeTo(view.sql).overwrite(condition))
        } else {
          val difference = new DeltaDifference(writing, view.sql, shown, key, condition)
          inPlace(view, writing, queryId, since) {
            // The commit records the batch even if no row has changed.
            if (difference.isEmpty) shown.limit(0).writeTo(view.sql).append()
            else difference.write(DeltaCommits.application(queryId.get, view.sql))
          }
        }
      case _ =>
        val layout = DeltaLayout.of(session, view, shown.schema)
        // In dynamic mode, partitions without new rows would keep the old rows.
        val all = Map("partitionOverwriteMode" -> "static", "mergeSchema" -> "true")
        val writer = shown.writeTo(view.sql).options(all)
        inPlace(view, rows.sparkSession, queryId)(writer.overwrite(lit(true)))
        new DeltaLayout(view.copy(layout = layout)).cluster(session)
    }
  }

  override def fill(view: MaterializedView, rows: DataFrame, queryId: String): Unit = {
    val partitions = EmptyPartitions.columnsOf(session.table(view.sql))
    val filled = EmptyPartitions.refuse(columnsOf(view, rows), partitions, view.sql)
    noting(view, rows.sparkSession, Some(queryId))(filled.writeTo(view.sql).append())
  }

  private def columnsOf(view: MaterializedView, rows: DataFrame): DataFrame =
    rows.select(rows.columns.toSeq.map { name =>
      rows.col(quoteIdentifier(name)).as(name, view.schema(name).metadata)
    }: _*)

  private def recreateTable(
      view: MaterializedView,
      rows: DataFrame,
      queryId: Option[String]): Unit = {
    val layout = new DeltaLayout(view).check()
    val writer = layout(rows.writeTo(view.sql).using("delta"))
    val made = propertiesOf(view).foldLeft(writer) { case (writer, (key, value)) =>
      writer.tableProperty(key, value)
    }
    noting(view, rows.sparkSession, queryId)(made.createOrReplace())
    layout.cluster(session)
  }

  /**
   * Changes the rows and the view's definition in one commit, unless another writer has changed rows since a version.
   */
  private def inPlace(
      view: MaterializedView,
      writing: SparkSession,
      queryId: Option[String] = None,
      since: Option[Long] = None)(commit: => Unit): Unit = {
    forgetColumns(view)
    // No batch is of the new generation yet.
    def check(): Unit = since.flatMap(_ => writtenByOthers(view, "", since)).foreach { written =>
      throw analysis(
        "CHANGELOG_VIEW_WRITTEN_BY_OTHERS",
        "view" -> view.name,
        "written" -> written)
    }
    // The table's comment stays as is.
    val record = DeltaProperties(
      ViewDefinition.Prefix,
      view.definition.toProperties,
      kept = Set(ViewDefinition.Term),
      check _)
    noting(view, writing, queryId)(DeltaConflicts.changing(record)(commit))
  }

  /** Records the generation without new rows, because Delta skips a commit without row changes. */
  private def recordGeneration(view: MaterializedView, added: StructType): Unit =
    if (added.isEmpty) set(view, ViewDefinition.Generation -> view.definition.generation.get)
    else {
      session.sql(s"ALTER TABLE ${view.sql} ADD COLUMNS (${added.toDDL})")
      ()
    }

  /**
   * Removes the columns from Spark's catalog. A recreated table has columns in the catalog, a created table does not.
   * Delta does not update columns in the catalog, and refuses to stream a table whose catalog columns are outdated.
   */
  private def forgetColumns(view: MaterializedView): Unit = {
    val catalog = session.sessionState.catalog
    val table = catalog.getTableMetadata(view.name)
    if (table.schema.nonEmpty) {
      catalog.alterTable(table.copy(schema = new StructType, partitionColumnNames = Nil))
    }
  }

  /**
   * Records the generation of the rows in the commit.
   *
   * @param writing
   *   the session of the rows, which also commits
   * @param queryId
   *   the query with these rows as first batch, if any
   */
  private def noting(view: MaterializedView, writing: SparkSession, queryId: Option[String])(
      commit: => Unit): Unit = {
    val batch = queryId.map(id => Delta.ofBatch(DeltaCommits.application(id, view.sql), 0))
    val notes = batch.getOrElse(Map.empty) + (Delta.CommitNote -> view.definition.generation.get)
    Delta.having(writing, notes) {
      RefuseViewWrites.allow(writing)(DeltaConflicts.passing(commit))
    }
  }

  /** Does nothing, because one commit changes rows and definition together. */
  override def recover(view: MaterializedView): Boolean = false

  /** Writes the term into the properties. Delta rejects a commit concurrent with a change of properties. */
  override def fence(view: MaterializedView, term: Long): Unit =
    set(view, ViewDefinition.Term -> term.toString)

  override def version(view: MaterializedView): Long =
    session.sql(s"DESCRIBE HISTORY ${view.sql} LIMIT 1").select("version").head().getLong(0)

  override def lastVersion(view: MaterializedView): Option[Long] =
    DeltaCommits.lastVersion(session, view.sql)

  override def writtenByOthers(
      view: MaterializedView,
      queryId: String,
      since: Option[Long]): Option[String] = {
    val generation = view.definition.folder.getName
    new DeltaBatches(
      session,
      view.sql,
      generation,
      queryId,
      since.fold(0L)(_ + 1)).otherWriterVersion
      .map(version => s"version $version, which DESCRIBE HISTORY ${view.sql} shows")
  }

  override def changes(view: MaterializedView, from: Long, to: Option[Long]): DataFrame = {
    val newest = version(view)
    val last = to.fold(newest)(math.min(_, newest))
    def read(from: Long) = session.read
      .option("readChangeFeed", "true")
      .option("startingVersion", from)
      .option("endingVersion", last)
      .table(view.sql)
    // Delta rejects a version that does not exist yet.
    if (from > last) read(last).limit(0) else read(from)
  }

  /**
   * Streams the changes from the version before `from`, and filters. Delta rejects a starting version that does not
   * exist yet, and a different starting version after a restart.
   */
  override def changeStream(view: MaterializedView, from: Option[Long]): DataFrame = {
    val feed = session.readStream.option("readChangeFeed", "true")
    from.fold(feed.table(view.sql)) { from =>
      val begun = feed.option("startingVersion", math.max(from - 1, 0)).table(view.sql)
      begun.where(col("_commit_version") >= from)
    }
  }

  override def alter(view: MaterializedView, definition: ViewDefinition): Unit = {
    val (before, after) = (view.definition.toProperties, definition.toProperties)
    set(view, after.toSeq.diff(before.toSeq): _*)
    unset(view, before.keySet.diff(after.keySet))
  }

  private def unset(view: MaterializedView, names: Iterable[String]): Unit =
    if (names.nonEmpty) {
      val listed = names.map(quoteLiteral).mkString(", ")
      DeltaConflicts.passing(
        session.sql(s"ALTER TABLE ${view.sql} UNSET TBLPROPERTIES IF EXISTS ($listed)"))
      ()
    }

  private def set(view: MaterializedView, properties: (String, String)*): Unit =
    if (properties.nonEmpty) {
      DeltaConflicts.passing(
        session.sql(
          s"ALTER TABLE ${view.sql} SET TBLPROPERTIES (${ViewStorage.listed(properties)})"))
      ()
    }

  /** Renames the table. The folder may move, together with the checkpoint. */
  override def rename(view: MaterializedView, to: TableIdentifier): Unit = {
    session.sql(s"ALTER TABLE ${view.sql} RENAME TO ${to.copy(catalog = None).quotedString}")
    ()
  }

  private def quoteLiteral(text: String): String = Literal(text).sql

  override def drop(view: MaterializedView): Unit = {
    // `DROP TABLE` as a statement would drop the view.
    DropTableCommand(view.name, ifExists = false, isView = false, purge = false).run(session)
    ()
  }

  private def propertiesOf(view: MaterializedView): Map[String, String] =
    Map(
      Delta.DeletionVectors -> "true") ++ view.definition.toProperties + (Delta.ChangeFeed -> "true")
}

object DeltaStorage {

  /** Returns the path of the generation named by the properties, below the table's current location. */
  def currentPathOf(table: Path, generation: String): String =
    new Path(new Path(table, Folder), new Path(generation).getName).toString

  /**
   * Returns whether a definition belongs to the table in this folder, even if renamed. A definition copied from another
   * table does not.
   */
  def isOf(session: SparkSession, definition: ViewDefinition, table: Path): Boolean = {
    val home = new Path(table, Folder).toUri.getPath
    definition.generation.exists(new Path(_).getParent.toUri.getPath == home) ||
    hasHome(session, table)
  }

  /** Returns whether a table's folder contains the generations or the lease of a view. */
  def hasHome(session: SparkSession, table: Path): Boolean = {
    val home = new Path(table, Folder)
    home.getFileSystem(session.sessionState.newHadoopConf()).exists(home)
  }

  /** Fails if a view's table has lost the log. Without the log, the table seems to be no view. */
  def checkLog(session: SparkSession, table: Path): Unit = {
    val log = new Path(table, Delta.LogFolder)
    val files = log.getFileSystem(session.sessionState.newHadoopConf())
    if (hasHome(session, table) && !files.exists(log))
      throw new FileNotFoundException(s"$log is missing")
  }

  private val Folder = "_changelog"
}
