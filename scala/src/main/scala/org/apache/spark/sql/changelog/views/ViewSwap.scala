// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.FileNotFoundException

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.{Fence, StagedFolder, TextFile}
import org.apache.spark.sql.changelog.savepoints.RestorePoint

/**
 * ViewSwap: exchanges the contents and definitions of two views. Each view keeps its name and readers.
 *
 * {{{
 *   1  image of v         ─▶  <home of w>/swap, with the new generation of v
 *      the name of w      ─▶  <home of v>/swapping
 *   2  image of w         ─▶  v, at once
 *   3  <home of w>/swap   ─▶  w, at once
 * }}}
 * If the process ends between 2 and 3, the next statement that writes one of the views performs step 3. If the process
 * ends before 2, this statement discards the swap.
 */
object ViewSwap {

  /** The name of the folder, below the home of a view. */
  val Folder = "swap"

  /** The name of the file, below the home of the other view. */
  val Mark = "swapping"

  /** Swaps two views. Both names are checked, and no other statement writes the views. */
  def apply(session: SparkSession, v: MaterializedView, w: MaterializedView): Unit = {
    val place = folderOf(w)
    val hadoopConf = session.sessionState.newHadoopConf()
    val generation = ViewStorage.newGeneration(v.definition.home)
    val before = ViewImage(session, v, RestorePoint())
    new StagedFolder(place, hadoopConf).fill(new IllegalStateException(s"$place is there")) {
      staged =>
        before.write(staged)
        generationIn(session, staged).write(generation)
    }
    val mark = markOf(session, v)
    mark.write(w.name.nameParts.mkString("\n"))
    try {
      ViewImage(session, w, RestorePoint()).restore(
        session,
        v,
        Mode,
        s"it has changed places with ${w.sql}",
        Some(generation))
      complete(session, w, place)
    } catch {
      case error: Throwable =>
        try recover(session, v, remainsOf(session, v))
        catch { case NonFatal(other) => error.addSuppressed(other) }
        throw error
    }
    delete(session, markPath(v))
  }

  /**
   * The remains of an interrupted swap in a view's home.
   *
   * @param names
   *   the names of the remaining files and folders
   * @param other
   *   the view that changes places with the view, if recorded for the view and still there
   */
  private[views] case class Remains(names: Set[String], other: Option[MaterializedView])

  /** Completes or discards an interrupted swap. Returns whether there was any. */
  private[views] def recover(
      session: SparkSession,
      view: MaterializedView,
      left: Remains): Boolean = {
    if (left.names.contains(Mark)) {
      left.other.foreach(other => ViewLeases.of(session, other)(recoverFolder(session, other)))
      delete(session, markPath(view))
    }
    if (left.names.contains(Folder)) recoverFolder(session, view)
    left.names.nonEmpty
  }

  /** Finds the remains by a single listing, because remains are rare. */
  private[views] def remainsOf(session: SparkSession, view: MaterializedView): Remains = {
    val home = view.definition.home
    val files = home.getFileSystem(session.sessionState.newHadoopConf())
    val names =
      try files.listStatus(home).map(_.getPath.getName).toSet.intersect(Set(Folder, Mark))
      catch { case _: FileNotFoundException => Set.empty[String] }
    Remains(names, if (names.contains(Mark)) otherOf(session, view) else None)
  }

  private def otherOf(session: SparkSession, view: MaterializedView): Option[MaterializedView] =
    markOf(session, view).find().flatMap { name =>
      val catalog = new ViewCatalog(session)
      catalog.find(catalog.identify(name.split('\n').toSeq))
    }

  private def recoverFolder(session: SparkSession, view: MaterializedView): Unit = {
    val place = folderOf(view)
    generationIn(session, place).find().foreach { generation =>
      val next = new Path(generation).getName
      // The view may have been renamed since.
      val views = new ViewCatalog(session).listAllWithErrors().map(_._2)
      val isShown = views.exists(_.toOption.exists(_.definition.folder.getName == next))
      if (isShown) complete(session, view, place)
      else {
        // An unreadable view may show the generation. The folder then has the only copy of the other view's rows.
        views.foreach(_.get)
        delete(session, place)
      }
    }
  }

  private def complete(session: SparkSession, view: MaterializedView, place: Path): Unit = {
    ViewImage.read(session, place).foreach { image =>
      val reason = s"it has changed places with ${image.view.sql}"
      image.restore(session, view, Mode, reason)
    }
    delete(session, place)
  }

  private def delete(session: SparkSession, path: Path): Unit = {
    Fence.check("swap")
    path.getFileSystem(session.sessionState.newHadoopConf()).delete(path, true)
    ()
  }

  private def folderOf(view: MaterializedView): Path = new Path(view.definition.home, Folder)

  private def markPath(view: MaterializedView): Path = new Path(view.definition.home, Mark)

  private def markOf(session: SparkSession, view: MaterializedView): TextFile =
    new TextFile(markPath(view), session.sessionState.newHadoopConf())

  private def generationIn(session: SparkSession, place: Path): TextFile =
    new TextFile(new Path(place, "generation"), session.sessionState.newHadoopConf())

  private val Mode = "swapped"
}
