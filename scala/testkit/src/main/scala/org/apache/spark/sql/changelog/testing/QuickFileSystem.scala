// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File
import java.nio.file.{Files, Paths}

import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{LocalFileSystem, Path, RawLocalFileSystem}

/**
 * The local file system without checksums and permissions.
 *
 * Hadoop starts a `chmod` process for each created file, and a micro-batch creates dozens of files.
 */
class QuickFileSystem extends LocalFileSystem(new QuickFileSystem.Raw) {
  setWriteChecksum(false)
  setVerifyChecksum(false)
}

object QuickFileSystem {
  private class Raw extends RawLocalFileSystem {
    override def setPermission(path: Path, permission: FsPermission): Unit = ()
  }

  /** The settings for sessions to use this file system for files and checkpoints. */
  val conf: Map[String, String] = Map(
    "spark.hadoop.fs.file.impl" -> classOf[QuickFileSystem].getName,
    "spark.sql.streaming.checkpointFileManagerClass" ->
      "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager")

  /** The root of temporary files: a memory file system, if available. */
  private val root: File = {
    val memory = new File("/dev/shm")
    if (memory.isDirectory && memory.canWrite && memory.getUsableSpace > (1L << 30)) memory
    else new File(System.getProperty("java.io.tmpdir"))
  }

  def temporaryDirectory(): File = {
    val directory = Files.createTempDirectory(Paths.get(root.getPath), "spark-changelog").toFile
    org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(directory)
    directory
  }
}
