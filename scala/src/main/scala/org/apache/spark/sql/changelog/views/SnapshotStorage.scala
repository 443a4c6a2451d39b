// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.annotation.tailrec

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.{DataFrame, SparkSession}

import org.apache.spark.sql.changelog.checkpoint.{CheckpointFiles, Fence}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.sinks.{SinkInput, SinkOptions}
import org.apache.spark.sql.changelog.views.files.SnapshotVersions.Version
import org.apache.spark.sql.changelog.views.files.{
  FilesSink, FilesSinkProvider, SnapshotVersions, Snapshots, VersionSourceProvider
}

/**
 * SnapshotStorage: stores the versions of a view as immutable files, and publishes the last version in a catalog. Each
 * batch writes all rows into new files.
 *
 * {{{
 *   <home>/<generation>/checkpoint
 *   <home>/<generation>/rows/batch-7, batch-9
 * }}}
 */
abstract class SnapshotStorage(session: SparkSession) extends ViewStorage {

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

  override def snapshotsOf(view: MaterializedView, queryId: String): LazyList[ViewSnapshot] =
    new Snapshots(session, view.definition.rows).all.to(LazyList).map { case (batch, path) =>
      ViewSnapshot(batch, () => Some(read(view, path)))
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

  override def recover(view: MaterializedView): Boolean =
    SnapshotStorage.alone(view.definition.folder) {
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
  protected def isUnpublished(view: MaterializedView, number: Long, last: Version): Boolean

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

  /** Changes the definition and keeps the rows. */
  override def alter(view: MaterializedView, definition: ViewDefinition): Unit =
    new SnapshotVersions(session, view).last.foreach { case (_, version) =>
      show(view.copy(definition = definition), new Path(version.path))
    }

  /** Publishes the rows in a folder together with the definition of `view`. */
  def show(view: MaterializedView, path: Path): Unit =
    SnapshotStorage.alone(view.definition.folder) {
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
  protected def publish(view: MaterializedView, number: Long, version: Version): Unit

  override def changes(view: MaterializedView, from: Long, to: Option[Long]): DataFrame = {
    val shown = version(view)
    new SnapshotVersions(session, view).changes(from, to.fold(shown)(math.min(_, shown)))
  }

  override def changeStream(view: MaterializedView, from: Option[Long]): DataFrame =
    session.readStream
      .format(classOf[VersionSourceProvider].getName)
      .options(Map("view" -> view.sql) ++ from.map("fromVersion" -> _.toString))
      .load()

  private def latest(view: MaterializedView): Option[Path] =
    new Snapshots(session, view.definition.rows).latest.map(_._2)

  protected def write(view: MaterializedView, rows: DataFrame, path: Path): Unit =
    rows.write.mode("overwrite").format(view.fileFormat).save(path.toString)
}

object SnapshotStorage {

  /**
   * Serializes changes to a view's definition within this process, because a running query
   * publishes batches. Another view of the same name has another generation, and does not wait.
   */
  def alone[T](generation: Path)(change: => T): T =
    generation.getName.intern().synchronized(change)

  /** The folder of rows not written by a batch. */
  val Initial = "initial"

  /** The property with the number of the published version. */
  val Published: String = ViewDefinition.Prefix + "version"
}
