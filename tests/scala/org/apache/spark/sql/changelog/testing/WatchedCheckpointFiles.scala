// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FSInputStream, Path}

import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

/** Files of checkpoints of which a test is told while they are read. */
class WatchedCheckpointFiles(path: Path, hadoopConf: Configuration)
    extends FileSystemBasedCheckpointFileManager(path, hadoopConf) {
  import WatchedCheckpointFiles._

  override def open(path: Path): FSDataInputStream = {
    val file = super.open(path)
    new FSDataInputStream(new FSInputStream {
      private var seen = 0L

      override def read(): Int = file.read()

      override def read(bytes: Array[Byte], start: Int, size: Int): Int = {
        val count = file.read(bytes, start, size)
        if (file.getPos - seen >= Interval) {
          seen = file.getPos
          watch()
        }
        count
      }

      override def seek(place: Long): Unit = file.seek(place)

      override def getPos: Long = file.getPos

      override def seekToNewSource(place: Long): Boolean = file.seekToNewSource(place)

      override def close(): Unit = file.close()
    })
  }
}

object WatchedCheckpointFiles {
  private val Interval = 100000

  /** Called each so many bytes. */
  @volatile var watch: () => Unit = () => ()
}
