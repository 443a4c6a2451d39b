// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.io.{BufferedOutputStream, File, FileOutputStream}
import java.nio.file.{FileAlreadyExistsException, FileSystemException, Files, StandardCopyOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._

import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

/**
 * Writes files without starting a process for each.
 *
 * Hadoop's way to a local file runs `chmod` and `readlink`, which take many times as long as the
 * file itself, and a batch writes seven files and more. These have the permissions that the
 * process's `umask` leaves.
 *
 * What is written once for good, as offsets and commits are, gets a checksum beside it. State may
 * be written again by another attempt at the same time, and has checksums inside.
 */
private final class LocalCheckpointFiles(path: Path, hadoopConf: Configuration)
    extends FileSystemBasedCheckpointFileManager(path, hadoopConf) {
  import LocalCheckpointFiles._

  private val local = fs.asInstanceOf[LocalFileSystem]

  override def createTempFile(path: Path): FSDataOutputStream = {
    val file = local.pathToFile(path)
    Files.createDirectories(file.getParentFile.toPath)
    new FSDataOutputStream(new TemporaryFile(file), null)
  }

  override def renameTempFile(from: Path, to: Path, overwriteIfPossible: Boolean): Unit = {
    val (source, target) = (local.pathToFile(from), local.pathToFile(to))
    try {
      if (overwriteIfPossible) {
        LocalChecksum.delete(target)
        replace(source, target)
      } else {
        if (target.exists || !putInPlace(source, target)) {
          throw QueryExecutionErrors.renamePathAsExistsPathError(from, to)
        }
        LocalChecksum.write(target)
      }
    } finally Files.deleteIfExists(source.toPath)
  }

  /** Verifies the file first, if it has a checksum. */
  override def open(path: Path): FSDataInputStream = {
    LocalChecksum.check(local.pathToFile(path))
    local.getRaw.open(path)
  }
}

private object LocalCheckpointFiles {

  /** Is not left behind half written, as when the disk is full. */
  private class TemporaryFile(file: File)
      extends BufferedOutputStream(new FileOutputStream(file)) {
    override def close(): Unit =
      try super.close()
      catch {
        case e: Throwable =>
          Files.deleteIfExists(file.toPath)
          throw e
      }
  }

  private def replace(source: File, target: File): Unit =
    Files.move(source.toPath, target.toPath, StandardCopyOption.ATOMIC_MOVE)

  /** False if there is such a file. Of two who do so at once one is told so, if there are links. */
  private def putInPlace(source: File, target: File): Boolean = {
    LocalChecksum.delete(target)
    try {
      Files.createLink(target.toPath, source.toPath)
      true
    } catch {
      case _: FileAlreadyExistsException => false
      case _: UnsupportedOperationException | _: FileSystemException =>
        !target.exists && {
          replace(source, target)
          true
        }
    }
  }
}
