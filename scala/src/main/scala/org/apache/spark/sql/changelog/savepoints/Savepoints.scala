// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

import org.apache.hadoop.fs.{FileSystem, Path}
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.{StagedFolder, TextFile}
import org.apache.spark.sql.changelog.errors.SavepointErrors

/**
 * A batch that is kept under a name.
 *
 * @param created
 *   when it was, in ms
 * @param folder
 *   where all lies that belongs to it
 */
case class Savepoint(name: String, batch: Long, created: Long, folder: Path) {

  /** From which a query can go on as it could from the one it was made of. */
  def checkpoint: Path = Savepoints.checkpointIn(folder)
}

/**
 * The savepoints of a checkpoint, or of a view.
 *
 * {{{
 *   <folder>/<name>/savepoint.json    the batch
 *   <folder>/<name>/checkpoint/…      a copy of what a query needs to go on from it
 * }}}
 *
 * @param of
 *   what they are of, as users name it
 */
class Savepoints(session: SparkSession, folder: Path, of: String) {
  import Savepoints._

  private implicit val formats: Formats = Serialization.formats(NoTypeHints)
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val files: FileSystem = folder.getFileSystem(hadoopConf)

  /** All of them, the oldest first. */
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
      throw SavepointErrors.notFound(of, name, all.map(_.name))
    }

  /**
   * Keeps a batch, at once.
   *
   * @param write
   *   makes the checkpoint, and whatever else belongs to it, in the folder it is given
   */
  def create(name: String, batch: Long)(write: Path => Unit): Savepoint = {
    val kept = Savepoint(name, batch, System.currentTimeMillis(), new Path(folder, name))
    files.mkdirs(folder)
    // what is left of one that was being dropped
    if (read(kept.folder).isEmpty) files.delete(kept.folder, true)
    new StagedFolder(kept.folder, hadoopConf).fill(SavepointErrors.exists(of, name)) { staged =>
      write(staged)
      file(staged).write(Serialization.write(Noted(batch, kept.created)))
    }
    kept
  }

  def drop(name: String, ifExists: Boolean): Unit = {
    val path = new Path(folder, name)
    if (!files.exists(path) && !ifExists) {
      throw SavepointErrors.notFound(of, name, all.map(_.name))
    }
    // what is left if the process ends here is no savepoint any more
    files.delete(new Path(path, Name), false)
    files.delete(path, true)
    ()
  }

  private def read(path: Path): Option[Savepoint] =
    file(path).find().map(Serialization.read[Noted](_)).map { noted =>
      Savepoint(path.getName, noted.batch, noted.created, path)
    }

  private def file(path: Path) = new TextFile(new Path(path, Name), hadoopConf)
}

object Savepoints {

  /** The name of the folder that holds them. */
  val Folder = "savepoints"

  /** Where the checkpoint of a savepoint lies in its folder. */
  def checkpointIn(folder: Path): Path = new Path(folder, "checkpoint")

  private val Name = "savepoint.json"

  private case class Noted(batch: Long, created: Long)

  /** Those of a checkpoint lie within it, and go with it. */
  def ofCheckpoint(session: SparkSession, checkpoint: Path): Savepoints =
    new Savepoints(
      session,
      new Path(new Path(checkpoint, "changelog"), Folder),
      s"the checkpoint $checkpoint")
}
