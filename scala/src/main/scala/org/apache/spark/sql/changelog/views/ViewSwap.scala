// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.StagedFolder
import org.apache.spark.sql.changelog.savepoints.Moment

/**
 * Two views change places: each gets what the other is, beside the readers that each has.
 *
 * {{{
 *   1  what v is      ─▶  <home of w>/swap
 *   2  what w is      ─▶  v, at once
 *   3  <home of w>/swap ─▶ w, at once
 * }}}
 * If the process ends between 2 and 3, the next statement that writes w does the third.
 */
object ViewSwap {

  /** The name of the folder, below the home of a view. */
  val Folder = "swap"

  /** The names of both have been checked, and nobody else writes them. */
  def apply(session: SparkSession, v: KeptView, w: KeptView): Unit = {
    val place = folderOf(w)
    val hadoopConf = session.sessionState.newHadoopConf()
    val before = ViewImage(session, v, Moment.Newest)
    new StagedFolder(place, hadoopConf).fill(new IllegalStateException(s"$place is there"))(
      before.write)
    new ViewRestore(session, ViewImage(session, w, Moment.Newest))(
      v,
      Mode,
      s"it has changed places with ${w.sql}")
    complete(session, w, place)
  }

  /** Does what is left of a swap by a process that has ended. */
  def settle(session: SparkSession, view: KeptView): Unit = {
    val place = folderOf(view)
    ViewImage.read(session, place).foreach { image =>
      val old = image.view.definition.folder.getName
      // whatever its name is now
      val isShown =
        new ViewCatalog(session).listAll().exists(_.definition.folder.getName == old)
      if (isShown) delete(session, place) else complete(session, view, place)
    }
  }

  private def complete(session: SparkSession, view: KeptView, place: Path): Unit = {
    ViewImage.read(session, place).foreach { image =>
      val reason = s"it has changed places with ${image.view.sql}"
      new ViewRestore(session, image)(view, Mode, reason)
    }
    delete(session, place)
  }

  private def delete(session: SparkSession, place: Path): Unit = {
    place.getFileSystem(session.sessionState.newHadoopConf()).delete(place, true)
    ()
  }

  private def folderOf(view: KeptView): Path = new Path(view.definition.home, Folder)

  private val Mode = "swapped"
}
