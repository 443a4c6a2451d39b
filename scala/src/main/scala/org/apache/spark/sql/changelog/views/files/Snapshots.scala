// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.files

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.classic.SparkSession

/** The snapshots in a folder. */
class Snapshots(session: SparkSession, folder: Path) {
  private val files: FileSystem = folder.getFileSystem(session.sessionState.newHadoopConf())

  /** The batch of the newest complete snapshot. */
  def latest: Option[Long] = all.maxOption

  def path(batchId: Long): Path = Snapshots.path(folder, batchId)

  /** Deletes snapshots that were replaced longer than `retention` milliseconds ago. */
  def retire(retention: Long): Unit = {
    val oldest = System.currentTimeMillis() - retention
    val sorted = all.sorted
    sorted.zip(sorted.drop(1)).foreach { case (batchId, next) =>
      if (files.getFileStatus(path(next)).getModificationTime < oldest) {
        files.delete(path(batchId), true)
      }
    }
  }

  /** The batches of those that are complete. */
  def all: Seq[Long] =
    if (!files.exists(folder)) Nil
    else {
      files.listStatus(folder).toSeq.map(_.getPath).flatMap { path =>
        Some(path.getName)
          .filter(_.startsWith(Snapshots.Prefix))
          .flatMap(_.drop(Snapshots.Prefix.length).toLongOption)
          .filter(_ => files.exists(new Path(path, "_SUCCESS")))
      }
    }
}

object Snapshots {
  val Prefix = "batch-"

  def path(folder: Path, batchId: Long): Path = new Path(folder, s"$Prefix$batchId")
}
