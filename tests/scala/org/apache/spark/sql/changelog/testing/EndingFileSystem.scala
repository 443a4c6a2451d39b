// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.util.concurrent.atomic.AtomicInteger

import scala.util.Try

import org.apache.hadoop.fs.Path

/**
 * Lets files be changed so many times, and then no more, as if the process had ended there: what would
 * tidy up can't either.
 */
class EndingFileSystem extends WatchedFileSystem {
  import EndingFileSystem._

  override protected def beforeCreate(path: Path): Unit = take()

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
  @volatile private var holdUp: Option[() => Unit] = None

  private def take(): Unit = {
    val now = left.decrementAndGet()
    if (now < 0) holdUp match {
      case Some(holdUp) => if (now == -1) holdUp()
      case None => throw new IllegalStateException("the process has ended")
    }
  }

  /** Runs `body` before the file system makes one more change than `changes`, which then goes on, as do all others. */
  def holdUpAfter(changes: Int)(body: => Unit): Unit = {
    holdUp = Some(() => body)
    left.set(changes)
  }

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
