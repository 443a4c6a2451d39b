// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.internal.SQLConf

/**
 * CheckpointFiles: Spark's file manager for checkpoints, and [[LocalCheckpointFiles]] for local disks.
 *
 * @param path
 *   the root of the files
 */
abstract class CheckpointFiles(path: Path, hadoopConf: Configuration)
    extends CheckpointFileManager {
  private val files: CheckpointFileManager = path.getFileSystem(hadoopConf) match {
    case local: LocalFileSystem if local.getRaw.getClass == classOf[RawLocalFileSystem] =>
      new LocalCheckpointFiles(path, hadoopConf)
    case _ =>
      val spark = new Configuration(hadoopConf)
      spark.unset(SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key)
      CheckpointFileManager.create(path, spark)
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
