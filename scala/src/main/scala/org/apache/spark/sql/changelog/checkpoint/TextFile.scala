// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileSystem, FileUtil, Path}
import org.json4s.jackson.JsonMethods.parse
import org.json4s.jackson.Serialization
import org.json4s.{Formats, NoTypeHints}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

import org.apache.spark.sql.changelog.errors.{ChangelogErrors, ChangelogRuntimeException}

/** A small text file of a checkpoint or table, written atomically. */
class TextFile(path: Path, hadoopConf: Configuration) {
  private lazy val files = CheckpointFiles(path.getParent, hadoopConf)

  def exists: Boolean = files.exists(path)

  def write(text: String): Unit = write(text, files, replace = true)

  /**
   * Creates the file. Returns false if the file exists with another text. Of several concurrent writers, a single
   * writer succeeds, unless [[CheckpointFiles.whyNotCreatedOnce]] returns a reason.
   */
  def create(text: String): Boolean =
    try {
      val once = CheckpointFiles.creatingOnce(path.getParent, hadoopConf)
      write(text, once.getOrElse(files), replace = false)
      true
    } catch {
      // The response of a store may get lost. A repeated request then finds the file of the first.
      case _: FileAlreadyExistsException => find().contains(text)
    }

  private def write(text: String, files: CheckpointFileManager, replace: Boolean): Unit = {
    files.mkdirs(path.getParent)
    val stream = files.createAtomic(path, overwriteIfPossible = replace)
    try {
      stream.write(text.getBytes(UTF_8))
      stream.close()
    } catch {
      case error: Throwable =>
        stream.cancel()
        throw error
    }
  }

  def read(): String =
    Using.resource(files.open(path))(stream => new String(stream.readAllBytes(), UTF_8))

  /** Returns the text; empty if the file does not exist. */
  def find(): Option[String] =
    try Some(read())
    catch { case _: FileNotFoundException => None }
}

/** Wraps an error from reading a file into an error with the file's name and a way out. */
private[changelog] object NamingFile {
  def apply[T](file: Path)(read: Path => T): T =
    try read(file)
    catch {
      case error: ChangelogRuntimeException => throw error
      case NonFatal(e) =>
        throw ChangelogErrors.fileDamaged(
          file.toString,
          s"reading the file fails with ${e.toString.takeWhile(_ != '\n')}",
          cause = e)
    }

  /** Fails if a text begins like JSON, but is not JSON. A source may use another format for offsets. */
  def checkJson(text: String): Unit =
    if (text.startsWith("{") || text.startsWith("[")) {
      parse(text)
      ()
    }
}

/**
 * Creates a folder atomically: fills a temporary folder beside the target, then renames the folder.
 *
 * Object stores rename file by file. The folder is therefore filled in place there, and the file that is written last
 * tells readers that the folder is complete.
 */
class StagedFolder(into: Path, hadoopConf: Configuration) {
  private val files: FileSystem = into.getFileSystem(hadoopConf)

  private val isRenamed = CheckpointFiles.renamesAtomically(files)

  val folder: Path =
    if (isRenamed) new Path(into.getParent, s".${into.getName}-${UUID.randomUUID}") else into

  /** Copies a file or folder to `place` in the folder. */
  def copy(from: Path, place: String): Unit = {
    val target = new Path(folder, place)
    files.mkdirs(target.getParent)
    FileUtil.copy(from.getFileSystem(hadoopConf), from, files, target, false, hadoopConf)
    ()
  }

  /**
   * Fills the folder, and renames the folder to the target.
   *
   * @param write
   *   fills the given folder
   * @param taken
   *   the error if the target already exists
   */
  def fill[T](taken: => Throwable)(write: Path => T): T = {
    if (files.exists(into) && files.listStatus(into).nonEmpty) throw taken
    try {
      val result = write(folder)
      if (isRenamed) {
        try files.delete(into, false)
        catch { case _: IOException => throw taken }
        if (!files.rename(folder, into)) throw taken
      }
      result
    } catch {
      case error: Throwable =>
        files.delete(folder, true)
        throw error
    }
  }
}

/**
 * The original query of a checkpoint made for a fork or a changed query.
 *
 * @param queryId
 *   the query id in sinks
 * @param batch
 *   the last batch of the original query allowed in the new query's target; empty for a new target
 */
final case class QueryOrigin(queryId: String, batch: Option[Long])

/** The file `changelog/forked-from.json` of a checkpoint: the original queries, nearest first. */
object QueryOrigin {
  private implicit val formats: Formats = Serialization.formats(NoTypeHints)

  /** The file's path in the checkpoint. */
  val Place = "changelog/forked-from.json"

  def read(checkpoint: Path, hadoopConf: Configuration): Seq[QueryOrigin] =
    file(checkpoint, hadoopConf)
      .find()
      .fold(Seq.empty[QueryOrigin])(Serialization.read[Seq[QueryOrigin]](_))

  def write(checkpoint: Path, hadoopConf: Configuration, queries: Seq[QueryOrigin]): Unit =
    file(checkpoint, hadoopConf).write(Serialization.write(queries))

  private def file(checkpoint: Path, hadoopConf: Configuration): TextFile =
    new TextFile(new Path(checkpoint, Place), hadoopConf)
}
