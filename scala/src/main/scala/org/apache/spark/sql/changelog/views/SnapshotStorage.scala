// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.annotation.tailrec

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.command.DropTableCommand

import org.apache.spark.sql.changelog.checkpoint.{CheckpointFiles, Fence}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.sinks.{SinkInput, SinkOptions}
import org.apache.spark.sql.changelog.views.files.SnapshotVersions.Version
import org.apache.spark.sql.changelog.views.files.{
  FilesSink, FilesSinkProvider, SnapshotVersions, Snapshots, VersionSourceProvider
}

/**
 * SnapshotStorage: stores a view as immutable files. Each batch writes all rows into new files, and then repoints a
 * Spark view to these files. Readers in every session see the catalog change at once, unlike a change in a table's
 * files.
 *
 * {{{
 *   v: SELECT * FROM parquet.`<home>/<generation>/rows/batch-9`
 *   <home>/<generation>/checkpoint
 *   <home>/<generation>/rows/batch-7, batch-9
 * }}}
 */
class SnapshotStorage(session: SparkSession) extends ViewStorage {
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

  /** Rejects a store where two processes may both write the next version. */
  protected def checkStore(view: MaterializedView): Unit = {
    val hadoopConf = session.sessionState.newHadoopConf()
    CheckpointFiles.whyNotCreatedOnce(view.definition.folder, hadoopConf).foreach { reason =>
      throw analysis(
        "CHANGELOG_VIEW_STORE_NOT_SUPPORTED",
        "view" -> view.sql,
        "provider" -> view.definition.provider,
        "folder" -> view.definition.home,
        "reason" -> reason)
    }
  }

  override def sink(view: MaterializedView): (String, Map[String, String]) = {
    val (format, options) = stagingSink(view)
    (format, options + ("view" -> view.sql))
  }

  override def check(view: MaterializedView, input: SinkInput): Unit = {
    val (format, options) = sink(view)
    new FilesSink(new SinkOptions(format, options), (_, _) => ()).accept(input)
    ()
  }

  override def stagingSink(view: MaterializedView): (String, Map[String, String]) = (
    classOf[FilesSinkProvider].getName,
    Map("path" -> view.definition.rows.toString, "provider" -> view.fileFormat))

  override def snapshotsOf(view: MaterializedView, queryId: String): LazyList[ViewSnapshot] = {
    val snapshots = new Snapshots(session, view.definition.rows)
    snapshots.all.sorted.reverse.to(LazyList).map { batch =>
      ViewSnapshot(batch, () => Some(read(view, snapshots.path(batch))))
    }
  }

  override def stage(view: MaterializedView, rows: DataFrame, batch: Long): DataFrame = {
    val path = Snapshots.newPath(view.definition.rows, batch)
    write(view, rows, path)
    read(view, path)
  }

  private def read(view: MaterializedView, path: Path): DataFrame =
    session.read.schema(view.schema).format(view.fileFormat).load(path.toString)

  override def staged(view: MaterializedView): Option[DataFrame] =
    latest(view).map(path => session.read.format(view.fileFormat).load(path.toString))

  override def replace(
      view: MaterializedView,
      rows: DataFrame,
      how: Replacement,
      queryId: Option[String]): Unit = {
    val path = latest(view).getOrElse {
      val folder = view.definition.rows
      val path =
        if (queryId.isDefined) Snapshots.newPath(folder, 0)
        else new Path(folder, SnapshotStorage.Initial)
      val all = how match {
        case Replacement.RowsWhere(condition, _) =>
          rows.sparkSession.table(view.sql).where(!condition).unionByName(rows)
        case _ => rows
      }
      write(view, all, path)
      path
    }
    show(view, path)
  }

  override def fill(view: MaterializedView, rows: DataFrame, queryId: String): Unit =
    replace(view, rows, Replacement.AllRows, Some(queryId))

  override def recover(view: MaterializedView): Boolean = SnapshotStorage.alone(view) {
    val isBehind = new SnapshotVersions(session, view).last.exists { case (number, last) =>
      isUnpublished(view, number, last)
    }
    if (isBehind) {
      Fence.check("publish")
      publish(view)
    }
    isBehind
  }

  /** Returns whether the catalog lacks the last version. */
  protected def isUnpublished(view: MaterializedView, number: Long, last: Version): Boolean =
    number > version(view)

  /**
   * Adds a version with the new term. A commit by the last holder would need the same version number, and therefore
   * fails.
   */
  override def fence(view: MaterializedView, term: Long): Unit = {
    val versions = new SnapshotVersions(session, view)
    versions.last.foreach { case (_, version) =>
      versions.add(
        version.copy(properties = version.properties + (ViewDefinition.Term -> term.toString)))
    }
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

  /** Changes the definition and keeps the rows. */
  override def alter(view: MaterializedView, definition: ViewDefinition): Unit =
    new SnapshotVersions(session, view).last.foreach { case (_, version) =>
      show(view.copy(definition = definition), new Path(version.path))
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

  /** Publishes the rows in a folder together with the definition of `view`. */
  def show(view: MaterializedView, path: Path): Unit = SnapshotStorage.alone(view) {
    new SnapshotVersions(session, view).add(
      Version(path.toString, view.schema.json, view.definition.toProperties, at = 0))
    Fence.check("publish")
    publish(view)
  }

  /** Publishes the last version in the catalog. Repeats if a newer version appeared meanwhile. */
  @tailrec
  private def publish(view: MaterializedView): Unit = {
    val versions = new SnapshotVersions(session, view)
    val (number, version) = versions.last.get
    publish(view, number, version)
    if (versions.last.exists(_._1 > number)) publish(view)
  }

  /** Publishes a version of this number. */
  protected def publish(view: MaterializedView, number: Long, version: Version): Unit = {
    val schema = version.columns
    val text = select(view.copy(schema = schema), new Path(version.path))
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

  override def version(view: MaterializedView): Long = catalog
    .getTableMetadata(view.name)
    .properties
    .get(SnapshotStorage.Published)
    .fold(0L)(_.toLong)

  override def writtenByOthers(
      view: MaterializedView,
      queryId: String,
      since: Option[Long]): Option[String] =
    new SnapshotVersions(session, view).writtenByOthers.map(folder => s"files into $folder")

  override def changes(view: MaterializedView, from: Long, to: Option[Long]): DataFrame = {
    val shown = version(view)
    new SnapshotVersions(session, view).changes(from, to.fold(shown)(math.min(_, shown)))
  }

  override def changeStream(view: MaterializedView, from: Option[Long]): DataFrame =
    session.readStream
      .format(classOf[VersionSourceProvider].getName)
      .options(Map("view" -> view.sql) ++ from.map("fromVersion" -> _.toString))
      .load()

  private def latest(view: MaterializedView): Option[Path] = {
    val snapshots = new Snapshots(session, view.definition.rows)
    snapshots.latest.map(snapshots.path)
  }

  protected def write(view: MaterializedView, rows: DataFrame, path: Path): Unit =
    rows.write.mode("overwrite").format(view.fileFormat).save(path.toString)

  private def select(view: MaterializedView, path: Path): String = {
    val names = view.schema.fieldNames.map(quoteIdentifier).mkString(", ")
    s"SELECT $names FROM ${view.fileFormat}.${quoteIdentifier(path.toString)}"
  }
}

object SnapshotStorage {

  /**
   * Serializes changes to a view's definition within this process, because a running query
   * publishes batches. Another view of the same name has another generation, and does not wait.
   */
  def alone[T](view: MaterializedView)(change: => T): T =
    view.definition.folder.toString.intern().synchronized(change)

  /** The folder of rows not written by a batch. */
  val Initial = "initial"

  /** The property with the number of the published version. */
  val Published: String = ViewDefinition.Prefix + "version"
}
