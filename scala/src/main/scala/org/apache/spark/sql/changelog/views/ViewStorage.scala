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
import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.savepoints.Savepoints
import org.apache.spark.sql.changelog.sinks.SinkInput
import org.apache.spark.sql.changelog.views.files.SnapshotVersions
import org.apache.spark.sql.changelog.views.history.RefreshHistory

/**
 * How the rows of a view are stored, so that whoever reads it by its name sees the rows after a
 * whole batch.
 *
 * What is computed anew is staged in a generation of its own, next to the rows that are shown, and
 * replaces them at once, together with the definition.
 */
trait ViewStorage {

  /** Makes the table, without rows, for `view`, which then has a generation. */
  def create(view: KeptView): KeptView

  /** The sink that keeps the view current, and its options. */
  def sink(view: KeptView): (String, Map[String, String])

  /** Refuses changes that the sink can't keep. */
  def check(view: KeptView, input: SinkInput): Unit

  /** The sink that fills a generation which is not shown yet. */
  def stagingSink(view: KeptView): (String, Map[String, String])

  /**
   * The rows there were after batches of the query that fills the generation, the newest first, as far as
   * they are still there.
   *
   * @param queryId
   *   the query, as sinks know it
   */
  def keptRows(view: KeptView, queryId: String): LazyList[KeptRows]

  /** Lays rows where a generation that goes on after a batch, and is not shown yet, finds them. */
  def stage(view: KeptView, rows: DataFrame, batch: Long): DataFrame

  /** The rows that were staged, if any. */
  def staged(view: KeptView): Option[DataFrame]

  /**
   * Shows `rows` instead of what is shown, of the generation that `view` says. Snapshots of files are compared by
   * those who read their changes, whatever becomes of them.
   *
   * @param queryId
   *   the query whose first batch the rows are, as sinks know it; none if they are of no batch
   */
  def replace(
      view: KeptView,
      rows: DataFrame,
      how: Replacement,
      queryId: Option[String] = None): Unit

  /** Shows the first rows of a view that has none, which are the first batch of a query. */
  def fill(view: KeptView, rows: DataFrame, queryId: String): Unit

  /** Completes what a process has left half done. */
  def settle(view: KeptView): Unit

  /** Makes what the holder of a term before `term` has begun fail, if need be. */
  def fence(view: KeptView, term: Long): Unit

  /** The number of what is shown: a later version has a higher one. */
  def version(view: KeptView): Long

  /** A version that somebody else than the view's query has written after version `since`, if that can be told. */
  def versionOfOthers(view: KeptView, queryId: String, since: Option[Long]): Option[Long] = None

  /** The last version, for [[versionOfOthers]]. */
  def lastVersion(view: KeptView): Option[Long] = None

  /** The changes of the versions `from` to `to`, or to the one that is shown. */
  def changes(view: KeptView, from: Long, to: Option[Long]): DataFrame

  /** The view's changes as they come; from the rows that are shown, if no version is named. */
  def changeStream(view: KeptView, from: Option[Long]): DataFrame

  /** Lets the view have other properties. */
  def alter(view: KeptView, definition: ViewDefinition): Unit

  /** Gives it another name in the same database. */
  def rename(view: KeptView, to: TableIdentifier): Unit

  def drop(view: KeptView): Unit
}

/**
 * The rows that a view had since a batch, until another one has changed them.
 *
 * @param read
 *   none if they are no longer there
 */
case class KeptRows(since: Long, read: () => Option[DataFrame])

object ViewStorage {
  def apply(session: SparkSession, provider: String): ViewStorage = provider.toLowerCase match {
    case "delta" =>
      DeltaRelease.require("A view USING delta")
      new DeltaStorage(session)
    case "parquet" | "orc" => new SnapshotStorage(session)
    case other => throw ViewErrors.providerNotSupported(other, Seq("delta", "parquet", "orc"))
  }

  /** A folder for a new generation of a view. */
  def newGeneration(home: Path): String = new Path(home, UUID.randomUUID.toString).toString

  /** Properties as statements list them. */
  def listed(properties: Iterable[(String, String)]): String = properties
    .map { case (key, value) => s"${Literal(key).sql} = ${Literal(value).sql}" }
    .mkString(", ")

  /** Deletes a generation if showing it fails. */
  def discarding(session: SparkSession, staged: KeptView)(show: => Unit): Unit =
    try show
    catch {
      case error: Throwable =>
        discard(session, staged)
        throw error
    }

  /** Deletes a generation that is known not to be shown; what has failed may have come after that. */
  def discard(session: SparkSession, staged: KeptView): Unit = {
    val folder = staged.definition.folder
    val shown = Try {
      new ViewCatalog(session).find(staged.name).map { view =>
        ViewStorage(session, view.definition.provider).settle(view)
        new ViewCatalog(session).get(view.name.nameParts).definition.folder.getName
      }
    }
    if (shown.toOption.exists(!_.contains(folder.getName))) {
      folder.getFileSystem(session.sessionState.newHadoopConf()).delete(folder, true)
      ()
    }
  }

  /**
   * Deletes what nobody needs once other rows are shown than those of the generation of `before`. What is listed while
   * the lease holds is never shown again.
   *
   * @param retention
   *   for how many milliseconds rows stay after others have been shown
   */
  def retire(session: SparkSession, shown: KeptView, before: KeptView, retention: Long): Unit = {
    val files = before.definition.home.getFileSystem(session.sessionState.newHadoopConf())
    // whoever began to read rows of the last generation can go on; older ones go
    val recent =
      new SnapshotVersions(session, shown).shownSince(System.currentTimeMillis() - retention)
    val kept = Seq(shown, before).map(_.definition.folder) ++ recent
    val old = generations(files, before.definition.home)
      .filterNot(path => kept.exists(_.getName == path.getName))
    Fence.check("delete")
    (before.definition.checkpoint +: old).foreach(files.delete(_, true))
  }

  /** What lies in the home of a view beside generations. */
  private val Folders = Seq(
    RefreshHistory.Folder,
    SnapshotVersions.Folder,
    ViewLease.Folder,
    Savepoints.Folder,
    ViewSwap.Folder,
    ViewSwap.Mark)

  private def isGeneration(path: Path): Boolean = Try(UUID.fromString(path.getName)).isSuccess

  /** Whether anything of a view lies in a folder. */
  def isHome(session: SparkSession, path: Path): Boolean = {
    val files = path.getFileSystem(session.sessionState.newHadoopConf())
    files.exists(path) && files.listStatus(path).map(_.getPath).exists { path =>
      isGeneration(path) || Folders.contains(path.getName)
    }
  }

  /** Deletes what belongs to a view that is dropped. */
  def deleteAll(session: SparkSession, home: Path): Unit = {
    val files = home.getFileSystem(session.sessionState.newHadoopConf())
    Folders.foreach(folder => files.delete(new Path(home, folder), true))
    // what a process has left that ended while it was made
    if (files.exists(home)) {
      files
        .listStatus(home, (path: Path) => path.getName.startsWith(s".${ViewSwap.Folder}-"))
        .foreach(left => files.delete(left.getPath, true))
    }
    generations(files, home).foreach(files.delete(_, true))
    if (files.exists(home) && files.listStatus(home).isEmpty) files.delete(home, false)
    ()
  }

  /** What else may lie there is somebody else's. */
  private def generations(files: FileSystem, home: Path): Seq[Path] =
    if (!files.exists(home)) Nil
    else files.listStatus(home).toSeq.map(_.getPath).filter(isGeneration)
}
