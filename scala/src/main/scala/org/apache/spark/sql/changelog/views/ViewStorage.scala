// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.UUID

import scala.util.Try

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.classic.{DataFrame, SparkSession}

import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.connectors.delta.DeltaRelease
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.savepoints.Savepoints
import org.apache.spark.sql.changelog.sinks.SinkInput
import org.apache.spark.sql.changelog.views.files.SnapshotVersions
import org.apache.spark.sql.changelog.views.history.RefreshHistory

/**
 * ViewStorage: stores the rows of a view. Readers of the view's name see the rows after a complete batch.
 *
 * Recomputed rows are staged in a new generation beside the visible rows. The staged rows replace the visible rows in
 * one step, together with the definition.
 */
trait ViewStorage {

  /** Creates an empty table for `view`, and returns the view with its generation. */
  def create(view: MaterializedView): MaterializedView

  /** Returns the sink that keeps the view current, and the sink's options. */
  def sink(view: MaterializedView): (String, Map[String, String])

  /** Rejects changes not supported by the sink. */
  def check(view: MaterializedView, input: SinkInput): Unit

  /** Returns the sink that fills a generation before the generation is visible. */
  def stagingSink(view: MaterializedView): (String, Map[String, String])

  /**
   * Returns the rows after each batch of the generation's query, newest first, as far as the rows still exist.
   *
   * @param queryId
   *   the query's id, as known to sinks
   */
  def snapshotsOf(view: MaterializedView, queryId: String): LazyList[ViewSnapshot]

  /** Writes the rows of a batch into a new, still invisible generation for continuing after the batch. */
  def stage(view: MaterializedView, rows: DataFrame, batch: Long): DataFrame

  /** Returns the staged rows, if any. */
  def staged(view: MaterializedView): Option[DataFrame]

  /**
   * Replaces the visible rows by `rows`, which belong to the generation of `view`. Readers of file snapshots compare
   * the snapshots themselves, whatever `how` says.
   *
   * @param queryId
   *   the query with these rows as first batch, as known to sinks, if any
   */
  def replace(
      view: MaterializedView,
      rows: DataFrame,
      how: Replacement,
      queryId: Option[String] = None): Unit

  /** Writes the first rows of an empty view, as the first batch of a query. */
  def fill(view: MaterializedView, rows: DataFrame, queryId: String): Unit

  /** Completes the unfinished work of an ended process. Returns whether there was any. */
  def recover(view: MaterializedView): Boolean

  /** Makes unfinished commits under a term before `term` fail, if needed. */
  def fence(view: MaterializedView, term: Long): Unit

  /** Returns the visible version. Later versions have higher numbers. */
  def version(view: MaterializedView): Long

  /** Returns what anyone else than the view's query has written after the version `since`, for people, if known. */
  def writtenByOthers(
      view: MaterializedView,
      queryId: String,
      since: Option[Long]): Option[String] = None

  /** Returns an error if anyone else has changed what the view's name shows, until the view is recovered. */
  def alteredByOthers(view: MaterializedView): Option[Throwable] = None

  /** Returns the last version, for [[writtenByOthers]]. */
  def lastVersion(view: MaterializedView): Option[Long] = None

  /** Returns the changes of the versions `from` to `to`. The default for `to` is the visible version. */
  def changes(view: MaterializedView, from: Long, to: Option[Long]): DataFrame

  /** Returns a stream of the view's changes. Without `from`, the stream begins with the visible rows. */
  def changeStream(view: MaterializedView, from: Option[Long]): DataFrame

  /** Changes the view's properties. */
  def alter(view: MaterializedView, definition: ViewDefinition): Unit

  /** Renames the view within its database. */
  def rename(view: MaterializedView, to: TableIdentifier): Unit

  def drop(view: MaterializedView): Unit
}

/**
 * ViewSnapshot: the rows of a view from one batch until the next batch with changes.
 *
 * @param read
 *   returns the rows, or None if deleted
 */
case class ViewSnapshot(since: Long, read: () => Option[DataFrame])

object ViewStorage {
  def apply(session: SparkSession, view: MaterializedView): ViewStorage =
    if (view.isInSessionCatalog) inSessionCatalog(session, view.definition.provider)
    else if (view.isIceberg) new IcebergStorage(session)
    else new CatalogStorage(session)

  private def inSessionCatalog(session: SparkSession, provider: String): ViewStorage =
    provider.toLowerCase match {
      case "delta" =>
        DeltaRelease.require("A view USING delta")
        new DeltaStorage(session)
      case "parquet" | "orc" => new FilesStorage(session)
      case other =>
        throw analysis(
          "CHANGELOG_VIEW_PROVIDER_NOT_SUPPORTED",
          "provider" -> other,
          "providers" -> Seq("delta", "parquet", "orc"))
    }

  /** Returns a folder for a new generation of a view. */
  def newGeneration(home: Path): String = new Path(home, UUID.randomUUID.toString).toString

  /** Returns properties in SQL syntax. */
  def listed(properties: Iterable[(String, String)]): String = properties
    .map { case (key, value) => s"${Literal(key).sql} = ${Literal(value).sql}" }
    .mkString(", ")

  /** Deletes a generation if showing the rows fails. */
  def discarding(session: SparkSession, staged: MaterializedView)(show: => Unit): Unit =
    try show
    catch {
      case error: Throwable =>
        discard(session, staged)
        throw error
    }

  /** Deletes a generation known to be invisible. A failure may have come after the generation became visible. */
  def discard(session: SparkSession, staged: MaterializedView): Unit = {
    val folder = staged.definition.folder
    val shown = Try {
      new ViewCatalog(session).find(staged.name).map { view =>
        ViewStorage(session, view).recover(view)
        new ViewCatalog(session).get(view.name.nameParts).definition.folder.getName
      }
    }
    if (shown.toOption.exists(!_.contains(folder.getName))) {
      folder.getFileSystem(session.sessionState.newHadoopConf()).delete(folder, true)
      ()
    }
  }

  /**
   * Deletes the checkpoint and the generations no longer needed, once the view shows another generation than `before`.
   * No generation listed under the lease becomes visible again.
   *
   * @param retention
   *   how long replaced rows stay readable, in milliseconds
   */
  def retire(
      session: SparkSession,
      shown: MaterializedView,
      before: MaterializedView,
      retention: Long): Unit = {
    val files = before.definition.home.getFileSystem(session.sessionState.newHadoopConf())
    // Readers of the last generation can finish. Older generations are deleted.
    val recent =
      new SnapshotVersions(session, shown).shownSince(System.currentTimeMillis() - retention)
    val kept = Seq(shown, before).map(_.definition.folder) ++ recent
    val old = generations(files, before.definition.home)
      .filterNot(path => kept.exists(_.getName == path.getName))
    Fence.check("delete")
    (before.definition.checkpoint +: old).foreach(files.delete(_, true))
  }

  /** The contents of a view's home besides generations. */
  private val Folders = Seq(
    RefreshHistory.Folder,
    SnapshotVersions.Folder,
    ViewLease.Folder,
    Savepoints.Folder,
    ViewSwap.Folder,
    ViewSwap.Mark)

  private def isGeneration(path: Path): Boolean = Try(UUID.fromString(path.getName)).isSuccess

  /** Returns whether a folder contains parts of a view. */
  def isHome(session: SparkSession, path: Path): Boolean = {
    val files = path.getFileSystem(session.sessionState.newHadoopConf())
    files.exists(path) && files.listStatus(path).map(_.getPath).exists { path =>
      isGeneration(path) || Folders.contains(path.getName)
    }
  }

  /** Deletes the files of a dropped view. */
  def deleteAll(session: SparkSession, home: Path): Unit = {
    val files = home.getFileSystem(session.sessionState.newHadoopConf())
    Folders.foreach(folder => files.delete(new Path(home, folder), true))
    // Staging folders of an interrupted swap.
    if (files.exists(home)) {
      files
        .listStatus(home, (path: Path) => path.getName.startsWith(s".${ViewSwap.Folder}-"))
        .foreach(left => files.delete(left.getPath, true))
    }
    generations(files, home).foreach(files.delete(_, true))
    if (files.exists(home) && files.listStatus(home).isEmpty) files.delete(home, false)
    ()
  }

  /** Returns the generations. Anything else in the folder may belong to others. */
  private def generations(files: FileSystem, home: Path): Seq[Path] =
    if (!files.exists(home)) Nil
    else files.listStatus(home).toSeq.map(_.getPath).filter(isGeneration)
}
