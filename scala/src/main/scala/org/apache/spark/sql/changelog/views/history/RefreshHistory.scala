// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.history

import java.util.UUID

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileSystem, Path}
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.views.MaterializedView

/**
 * RefreshHistory: the last refreshes of a view, including failed refreshes, as recorded at the first look.
 *
 * The history lies beside the generations, because a recomputation leaves the view's identity as is. Each refresh has a
 * separate file, because an interrupted process may write a record late.
 *
 * {{{
 *   <home>/refreshes/1764023464123-<id>.json     named by the start time
 * }}}
 */
class RefreshHistory(session: SparkSession, home: Path) {
  import RefreshHistory._

  private implicit val formats: Formats = Serialization.formats(NoTypeHints)
  private val folder = new Path(home, Folder)
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files: FileSystem = home.getFileSystem(hadoopConf)

  /** All recorded refreshes, newest first. Listed once, and each record is read once, as far as needed. */
  lazy val all: LazyList[RefreshRecord] = paths.to(LazyList).flatMap(read)

  /** Returns the `count` newest refreshes. */
  def newest(count: Int): Seq[RefreshRecord] = all.take(count)

  def last: Option[RefreshRecord] = all.headOption

  def lastSuccess: Option[RefreshRecord] = all.find(_.succeeded)

  /** Returns the last recorded version of the view's table. A run until STOP records none. */
  def lastShown: Option[Long] = all.flatMap(_.shown).headOption

  /** Runs a refresh, and records the outcome. */
  def remember(refresh: RefreshReport => Unit): Unit = {
    val report = new RefreshReport
    try refresh(report)
    catch {
      case error: Throwable =>
        try add(report.finished(Some(RefreshError(session, error))))
        catch { case NonFatal(other) => error.addSuppressed(other) }
        // Throws the cause, without Spark's wrapper that lists the stream's offsets and plan.
        throw RefreshError.causeOf(error)
    }
    add(report.finished(error = None))
  }

  def add(record: RefreshRecord): Unit = {
    val name = f"${record.started}%013d-${UUID.randomUUID}.json"
    new TextFile(new Path(folder, name), hadoopConf).write(Serialization.write(record))
    forget()
  }

  /** Deletes the oldest records, but keeps the last successful refresh. */
  private def forget(): Unit = {
    val old = paths.drop(Most)
    if (old.nonEmpty) {
      val success = paths.find(read(_).exists(_.succeeded))
      old.filterNot(success.contains).foreach(files.delete(_, false))
    }
  }

  private def read(path: Path): Option[RefreshRecord] =
    new TextFile(path, hadoopConf).find().map(Serialization.read[RefreshRecord](_))

  private def paths: Seq[Path] =
    if (!files.exists(folder)) Nil
    else {
      val found = files.listStatus(folder).toSeq.map(_.getPath)
      found.filter(_.getName.matches("\\d+-.*\\.json")).sortBy(_.getName).reverse
    }
}

object RefreshHistory {

  /** The name of the folder, below the home of a view. */
  val Folder = "refreshes"

  private val Most = 100

  def ofView(session: SparkSession, view: MaterializedView): RefreshHistory =
    new RefreshHistory(session, view.definition.home)
}
