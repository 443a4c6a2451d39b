// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.io.{File, IOException}

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.changelog.testing.WatchedFileSystem

/**
 * Fails now and then while a version of state is written: before a snapshot, and after a delta. Or
 * it takes long. Each version once, so that another attempt gets by.
 */
class UnreliableFileSystem extends WatchedFileSystem {
  import UnreliableFileSystem._

  override protected def beforeCreate(path: Path): Unit =
    if (path.getName.contains(".snapshot"))
      trouble(path.getParent, path.getName.split('.')(1), "snapshot")

  override def rename(from: Path, to: Path): Boolean = {
    val isRenamed = super.rename(from, to)
    if (Written.exists(to.getName.endsWith)) {
      val Array(version, kind) = to.getName.split("\\.", 2)
      trouble(to.getParent, version, kind)
    }
    isRenamed
  }

  private def trouble(folder: Path, version: String, kind: String): Unit = {
    val partition = pathToFile(folder)
    val isState = partition.getPath.contains("/state/")
    def isFirst = new File(partition, s"trouble-with-$version").createNewFile()
    val share = getConf.getInt(Failures, 0)
    val draw = Math.floorMod((folder.toString + version + kind).hashCode * 31, 100)
    if (isState && version.forall(_.isDigit) && draw < share && isFirst) {
      if (draw % 4 == 3) Thread.sleep(SlowMillis)
      else
        throw new IOException(s"version $version of $folder: the $kind fails, as the test wants")
    }
  }
}

object UnreliableFileSystem {

  /** Setting: of how many files in a hundred there is trouble with. */
  val Failures = "changelog.test.failures"

  private val Written = Seq(".delta", ".zip", ".changelog")
  private val SlowMillis = 3000L
}
