// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.util.concurrent.atomic.AtomicInteger

import scala.util.Try

import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{FSDataOutputStream, Path}
import org.apache.hadoop.util.Progressable

/**
 * Lets files be changed so many times, and then no more, as if the process had ended there: what would
 * tidy up can't either.
 */
class EndingFileSystem extends QuickFileSystem {
  import EndingFileSystem._

  override def create(
      path: Path,
      permission: FsPermission,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable): FSDataOutputStream = {
    take()
    super.create(path, permission, overwrite, bufferSize, replication, blockSize, progress)
  }

  override def mkdirs(path: Path): Boolean = {
    take()
    super.mkdirs(path)
  }

  override def rename(from: Path, to: Path): Boolean = {
    take()
    super.rename(from, to)
  }

  override def delete(path: Path, recursive: Boolean): Boolean = {
    take()
    super.delete(path, recursive)
  }
}

object EndingFileSystem {

  /** Makes a session use it. */
  val conf: Map[String, String] = Map(
    "fs.file.impl" -> classOf[EndingFileSystem].getName,
    "fs.file.impl.disable.cache" -> "true")

  private val left = new AtomicInteger(Int.MaxValue)

  private def take(): Unit =
    if (left.decrementAndGet() < 0) throw new IllegalStateException("the process has ended")

  /** Does something while files may be changed only so many times. Returns how often they were. */
  def within[T](changes: Int)(body: => T): (T, Int) = {
    left.set(changes)
    try {
      val result = body
      (result, changes - left.get)
    } finally left.set(Int.MaxValue)
  }

  /** The same of something that may fail for that. */
  def ending(changes: Int)(body: => Any): Unit = {
    Try(within(changes)(body))
    ()
  }
}
