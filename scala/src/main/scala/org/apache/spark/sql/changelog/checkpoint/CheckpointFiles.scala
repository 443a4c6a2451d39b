// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.io.IOException
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE
import org.apache.hadoop.fs._

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.{
  CheckpointFileManager, FileSystemBasedCheckpointFileManager
}
import org.apache.spark.sql.internal.SQLConf

/**
 * CheckpointFiles: Spark's file manager for checkpoints, [[LocalCheckpointFiles]] for local disks, and
 * [[StoreCheckpointFiles]] for object stores.
 *
 * @param path
 *   the root of the files
 */
class CheckpointFiles(path: Path, hadoopConf: Configuration) extends CheckpointFileManager {
  private val files: CheckpointFileManager = path.getFileSystem(hadoopConf) match {
    case local: LocalFileSystem if local.getRaw.getClass != classOf[RawLocalFileSystem] =>
      CheckpointFiles.ofSpark(path, hadoopConf)
    case _ =>
      CheckpointFiles
        .creatingOnce(path, hadoopConf)
        .getOrElse(CheckpointFiles.ofSpark(path, hadoopConf))
  }

  override def createAtomic(
      path: Path,
      overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    files.createAtomic(path, overwriteIfPossible)

  override def open(path: Path): FSDataInputStream = files.open(path)

  override def list(path: Path, filter: PathFilter): Array[FileStatus] = files.list(path, filter)

  override def mkdirs(path: Path): Unit = files.mkdirs(path)

  override def exists(path: Path): Boolean = files.exists(path)

  override def delete(path: Path): Unit = files.delete(path)

  override def isLocal: Boolean = files.isLocal

  override def createCheckpointDirectory(): Path = files.createCheckpointDirectory()

  override def close(): Unit = files.close()
}

private[changelog] object CheckpointFiles {

  /** Spark's setting for the file manager. */
  val Setting: String = SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key

  /** File systems that rename a file or folder in one step, and fail if the target exists. */
  private val Renaming = Set("file", "hdfs", "abfs", "abfss")

  /** Returns the manager of the session's setting, by default [[CheckpointFiles]]. */
  def apply(path: Path, hadoopConf: Configuration): CheckpointFileManager =
    if (hadoopConf.get(Setting) == null) new CheckpointFiles(path, hadoopConf)
    else CheckpointFileManager.create(path, hadoopConf)

  /**
   * Returns a manager whose `createAtomic` without overwriting is a compare-and-set: of several concurrent writers, a
   * single writer creates the file. Returns None if the file system has no such operation.
   */
  def creatingOnce(path: Path, hadoopConf: Configuration): Option[CheckpointFileManager] =
    path.getFileSystem(hadoopConf) match {
      case _: LocalFileSystem => Some(new LocalCheckpointFiles(path, hadoopConf))
      case store if store.hasPathCapability(path, FS_OPTION_CREATE_CONDITIONAL_OVERWRITE) =>
        Some(new StoreCheckpointFiles(path, hadoopConf))
      case other => Option.when(renamesAtomically(other))(ofSpark(path, hadoopConf))
    }

  def renamesAtomically(files: FileSystem): Boolean = Renaming(files.getUri.getScheme)

  /**
   * Returns why the files of a folder have no compare-and-set. A server may ignore the condition of a creation, or may
   * list new files late. Both are tried.
   */
  def whyNotCreatedOnce(folder: Path, hadoopConf: Configuration): Option[String] =
    creatingOnce(folder, hadoopConf) match {
      case None =>
        Some("The file system neither creates a file on a condition nor renames in one step")
      case Some(files: StoreCheckpointFiles) =>
        val probe = new Path(folder, s".probe-${UUID.randomUUID}")
        val file = new TextFile(probe, hadoopConf)
        try
          if (!file.create("first") || file.create("second"))
            Some("The server ignores the condition, and creates a file twice")
          else
            Option.when(!files.list(folder).exists(_.getPath.getName == probe.getName)) {
              "The server does not list a file directly after the creation"
            }
        finally files.delete(probe)
      case _ => None
    }

  private def ofSpark(path: Path, hadoopConf: Configuration): CheckpointFileManager = {
    val spark = new Configuration(hadoopConf)
    spark.unset(Setting)
    CheckpointFileManager.create(path, spark)
  }
}

/**
 * Writes each file of an object store in one request.
 *
 * Spark's managers write a temporary file, and rename the file. Object stores copy and delete instead: readers miss a
 * replaced file meanwhile, and two writers may both succeed.
 */
private[checkpoint] final class StoreCheckpointFiles(path: Path, hadoopConf: Configuration)
    extends FileSystemBasedCheckpointFileManager(path, hadoopConf) {

  override def createAtomic(
      path: Path,
      overwriteIfPossible: Boolean): CancellableFSDataOutputStream = {
    val file = fs.createFile(path)
    file.recursive()
    if (overwriteIfPossible) file.overwrite(true)
    else {
      file.create()
      file.must(FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true)
    }
    val upload = file.build()
    new CancellableFSDataOutputStream(upload) {
      private var hasEnded = false

      override def close(): Unit = if (!hasEnded) {
        hasEnded = true
        try upload.close()
        catch {
          case error: IOException if !overwriteIfPossible && fs.exists(path) =>
            throw new FileAlreadyExistsException(s"$path exists: ${error.getMessage}")
        }
      }

      override def cancel(): Unit = if (!hasEnded) {
        hasEnded = true
        upload.abort()
        ()
      }
    }
  }
}
