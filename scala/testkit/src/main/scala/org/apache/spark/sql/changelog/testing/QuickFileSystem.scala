// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{Files, Paths}

import scala.util.Try

import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{FileStatus, LocalFileSystem, Path, RawLocalFileSystem}

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

    /** Reads the attributes of each file once, where Hadoop reads them four times. */
    override def listStatus(path: Path): Array[FileStatus] = {
      def statusOf(file: File): Option[FileStatus] = Try {
        val found = Files.readAttributes(file.toPath, classOf[BasicFileAttributes])
        val place = new Path(file.getPath).makeQualified(getUri, null) // as Hadoop names it
        val time = found.lastModifiedTime.toMillis
        new FileStatus(found.size, found.isDirectory, 1, 1L << 25, time, place)
      }.toOption // None if the file is gone
      // The list is null for a file, and for nothing.
      Option(pathToFile(path).listFiles()).fold(super.listStatus(path))(_.flatMap(statusOf(_)))
    }
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
