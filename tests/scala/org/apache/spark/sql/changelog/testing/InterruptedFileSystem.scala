// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.util.concurrent.atomic.AtomicReference

import org.apache.hadoop.fs.Path

/** Lets something happen right before a certain file is written, as if another process were in between. */
class InterruptedFileSystem extends WatchedFileSystem {
  override protected def beforeCreate(path: Path): Unit =
    InterruptedFileSystem.next.get.filter(_.isBefore(path)).foreach { interruption =>
      // what happens then writes files, too
      InterruptedFileSystem.next.set(None)
      interruption.happens()
    }
}

object InterruptedFileSystem {

  /** Makes a session use it. */
  val conf: Map[String, String] = Map(
    "fs.file.impl" -> classOf[InterruptedFileSystem].getName,
    "fs.file.impl.disable.cache" -> "true")

  private case class Interruption(isBefore: Path => Boolean, happens: () => Unit)

  private val next = new AtomicReference[Option[Interruption]](None)

  /** Lets `happens` run once while `body` does, before a file is written whose name has `part` in it. */
  def once(part: String)(happens: => Unit)(body: => Unit): Unit = {
    next.set(Some(Interruption(_.getName.contains(part), () => happens)))
    body
    if (next.getAndSet(None).isDefined)
      throw new IllegalStateException(s"no file was written with $part in its name")
  }
}
