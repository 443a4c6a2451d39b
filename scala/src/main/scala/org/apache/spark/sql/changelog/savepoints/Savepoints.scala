// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

import java.sql.Timestamp

import org.apache.hadoop.fs.{FileSystem, Path}
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.SqlCommand
import org.apache.spark.sql.changelog.checkpoint.{StagedFolder, TextFile}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * Savepoint: a batch stored under a name.
 *
 * @param created
 *   the time of creation, in ms
 * @param folder
 *   the folder with all files of the savepoint
 */
case class Savepoint(name: String, batch: Long, created: Long, folder: Path) {

  /** Returns the checkpoint from which a query can continue as from the original checkpoint. */
  def checkpoint: Path = Savepoints.checkpointIn(folder)
}

/**
 * Savepoints: the savepoints of a checkpoint or a view.
 *
 * {{{
 *   <folder>/<name>/savepoint.json    the batch
 *   <folder>/<name>/checkpoint/…      a copy of the files needed to continue
 * }}}
 *
 * @param of
 *   the owner of the savepoints, as named for users
 */
class Savepoints(session: SparkSession, folder: Path, of: String) {
  import Savepoints._

  private implicit val formats: Formats = Serialization.formats(NoTypeHints)
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files: FileSystem = folder.getFileSystem(hadoopConf)

  /** Returns the savepoints, oldest first. */
  def all: Seq[Savepoint] =
    if (!files.exists(folder)) Nil
    else {
      files
        .listStatus(folder)
        .toSeq
        .map(_.getPath)
        .filterNot(_.getName.startsWith("."))
        .flatMap(path => read(path))
        .sortBy(savepoint => (savepoint.created, savepoint.name))
    }

  def get(name: String): Savepoint =
    read(new Path(folder, name)).getOrElse {
      throw analysis(
        "CHANGELOG_SAVEPOINT_NOT_FOUND",
        "of" -> of.capitalize,
        "savepoint" -> name,
        "known" -> all.map(_.name))
    }

  /**
   * Stores a batch, in one step.
   *
   * @param write
   *   writes the checkpoint and further contents into the given folder
   */
  def create(name: String, batch: Long)(write: Path => Unit): Savepoint = {
    val kept = Savepoint(name, batch, System.currentTimeMillis(), new Path(folder, name))
    files.mkdirs(folder)
    // Remains of a savepoint whose drop was interrupted.
    if (read(kept.folder).isEmpty) files.delete(kept.folder, true)
    new StagedFolder(kept.folder, hadoopConf)
      .fill(analysis("CHANGELOG_SAVEPOINT_EXISTS", "of" -> of.capitalize, "savepoint" -> name)) {
        staged =>
          write(staged)
          file(staged).write(Serialization.write(SavepointFile(batch, kept.created)))
      }
    kept
  }

  def drop(name: String, ifExists: Boolean): Unit = {
    val path = new Path(folder, name)
    if (!files.exists(path) && !ifExists) {
      throw analysis(
        "CHANGELOG_SAVEPOINT_NOT_FOUND",
        "of" -> of.capitalize,
        "savepoint" -> name,
        "known" -> all.map(_.name))
    }
    // Without this file, the remains of an interrupted drop are no savepoint.
    files.delete(new Path(path, Name), false)
    files.delete(path, true)
    ()
  }

  private def read(path: Path): Option[Savepoint] =
    file(path).find().map(Serialization.read[SavepointFile](_)).map { noted =>
      Savepoint(path.getName, noted.batch, noted.created, path)
    }

  private def file(path: Path) = new TextFile(new Path(path, Name), hadoopConf)
}

object Savepoints {

  /** The name of the folder with the savepoints. */
  val Folder = "savepoints"

  /** Returns the folder of a savepoint's checkpoint. */
  def checkpointIn(folder: Path): Path = new Path(folder, "checkpoint")

  private val Name = "savepoint.json"

  private case class SavepointFile(batch: Long, created: Long)

  /** Returns the savepoints of a checkpoint, stored inside and deleted together with the checkpoint. */
  def ofCheckpoint(session: SparkSession, checkpoint: Path): Savepoints =
    new Savepoints(
      session,
      new Path(new Path(checkpoint, "changelog"), Folder),
      s"the checkpoint $checkpoint")
}

/**
 * RestorePoint: the batch from which a query continues, given by number or by savepoint. The default is the last batch
 * done.
 */
case class RestorePoint(batch: Option[Long] = None, savepoint: Option[String] = None)

/**
 * SavepointOwner: a checkpoint or a view, whose batches can be stored as savepoints.
 *
 * @param name
 *   the path of the checkpoint, or the name of the view
 * @param keep
 *   stores a batch under a name; the last batch done, if None
 */
case class SavepointOwner(name: Seq[String])(
    val savepoints: SparkSession => Savepoints,
    val keep: (SparkSession, String, Option[Long]) => Savepoint)

object SavepointOwner {

  /** Returns the checkpoint of a query, running or stopped, as an owner of savepoints. */
  def checkpoint(path: String): SavepointOwner = {
    def of(session: SparkSession) = Savepoints.ofCheckpoint(session, new Path(path))
    SavepointOwner(Seq(path))(
      of,
      (session, name, batch) => {
        val forkable = ForkableCheckpoint(session, new Path(path))
        val checked = forkable.checked(batch)
        of(session).create(name, checked) { folder =>
          forkable.fork(checked, Savepoints.checkpointIn(folder), noted = true)
        }
      })
  }
}

/** SavepointCommands: the statements about savepoints. */
object SavepointCommands {
  private val columns =
    "savepoint STRING NOT NULL, batch BIGINT NOT NULL, created TIMESTAMP NOT NULL, " +
      "checkpoint STRING NOT NULL"

  private def row(kept: Savepoint): Row =
    Row(kept.name, kept.batch, new Timestamp(kept.created), kept.checkpoint.toString)

  /** `CREATE SAVEPOINT name OF … [AT BATCH n]`: stores the files needed to continue from a batch. */
  def create(name: String, of: SavepointOwner, batch: Option[Long]): LogicalPlan =
    SqlCommand.returning(columns, "CREATE SAVEPOINT", name, of, batch)(session =>
      Seq(row(of.keep(session, name, batch))))

  /** `SHOW SAVEPOINTS OF …`: returns the savepoints, oldest first. */
  def show(of: SavepointOwner): LogicalPlan =
    SqlCommand.returning(columns, "SHOW SAVEPOINTS", of)(session =>
      of.savepoints(session).all.map(row))

  /** `DROP SAVEPOINT [IF EXISTS] name OF …`: deletes a savepoint. */
  def drop(name: String, of: SavepointOwner, ifExists: Boolean): LogicalPlan =
    SqlCommand.unit("DROP SAVEPOINT", name, of, ifExists)(session =>
      of.savepoints(session).drop(name, ifExists))

  /**
   * `FORK CHECKPOINT 'from' [AT BATCH n | AT SAVEPOINT s] INTO 'new'`: creates a checkpoint for a second run of the
   * query from a batch. Returns the batch.
   */
  def fork(from: String, at: RestorePoint, into: String): LogicalPlan =
    SqlCommand.returning("batch BIGINT NOT NULL", "FORK CHECKPOINT", from, at, into) { session =>
      val kept = at.savepoint.map(Savepoints.ofCheckpoint(session, new Path(from)).get)
      val forkable =
        ForkableCheckpoint(session, kept.fold(new Path(from))(_.checkpoint))
      val batch = forkable.checked(kept.map(_.batch).orElse(at.batch))
      forkable.fork(batch, new Path(into), noted = true)
      Seq(Row(batch))
    }
}
