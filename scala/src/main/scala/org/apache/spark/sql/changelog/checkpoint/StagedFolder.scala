// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.io.IOException
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FileUtil, Path}

/** Makes a folder beside the place that it gets, so that it is there whole or not at all. */
class StagedFolder(into: Path, hadoopConf: Configuration) {
  private val files: FileSystem = into.getFileSystem(hadoopConf)

  /** What is to be filled. */
  val folder: Path = new Path(into.getParent, s".${into.getName}-${UUID.randomUUID}")

  /** Copies a file or folder to a place within. */
  def copy(from: Path, place: String): Unit = {
    val target = new Path(folder, place)
    files.mkdirs(target.getParent)
    FileUtil.copy(from.getFileSystem(hadoopConf), from, files, target, false, hadoopConf)
    ()
  }

  /**
   * @param write
   *   fills the folder it is given
   * @param taken
   *   the error if something else has come to the place
   */
  def fill[T](taken: => Throwable)(write: Path => T): T = {
    if (files.exists(into) && files.listStatus(into).nonEmpty) throw taken
    try {
      val result = write(folder)
      try files.delete(into, false)
      catch { case _: IOException => throw taken }
      if (!files.rename(folder, into)) throw taken
      result
    } finally files.delete(folder, true)
  }
}
