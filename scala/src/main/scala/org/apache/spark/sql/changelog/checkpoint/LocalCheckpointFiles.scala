// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.io.{
  BufferedOutputStream,
  ByteArrayOutputStream,
  DataOutputStream,
  File,
  FileInputStream,
  FileOutputStream,
  IOException
}
import java.nio.ByteBuffer
import java.nio.file.{FileAlreadyExistsException, FileSystemException, Files, StandardCopyOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.util.DataChecksum

import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

import org.apache.spark.sql.changelog.errors.CheckpointFileErrors

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

/**
 * The checksum of a file on this machine, in `.name.crc` beside it, where Hadoop's file systems
 * keep and check theirs.
 */
private object LocalChecksum {
  private val Version = Array[Byte]('c', 'r', 'c', 0)
  private val BytesPerSum = 512

  /** By how much a checksum may seem older than its file, in ms. */
  private val ClockTolerance = 2000L

  def delete(file: File): Unit = Files.deleteIfExists(placeOf(file).toPath)

  /** Writes it, unless it can't be: the file is good without. */
  def write(file: File): Unit = {
    val place = placeOf(file).toPath
    val temporary = place.resolveSibling(s"${place.getFileName}.tmp")
    try {
      Files.write(temporary, sums(file, BytesPerSum))
      Files.move(temporary, place, StandardCopyOption.ATOMIC_MOVE)
    } catch {
      case _: IOException => Files.deleteIfExists(temporary)
    }
  }

  /**
   * Refuses a file that is empty, as no checkpoint's is, or not what its checksum tells of.
   *
   * A file that is newer than its checksum was changed on purpose, by an editor or by a writer who
   * keeps none.
   */
  def check(file: File): Unit = {
    if (file.isFile && file.length == 0) {
      throw CheckpointFileErrors.fileDamaged(file.getPath, "it is empty")
    }
    val place = placeOf(file)
    if (place.exists && place.lastModified + ClockTolerance >= file.lastModified) {
      val expected = Files.readAllBytes(place.toPath)
      val header = ByteBuffer.wrap(expected)
      val isKnown = expected.length >= 8 && expected.startsWith(Version) && header.getInt(
        4) > 0 && header.getInt(4) <= (1 << 20)
      if (!isKnown || !sums(file, header.getInt(4)).sameElements(expected)) {
        throw CheckpointFileErrors.fileDamaged(
          file.getPath,
          "its checksum is not that of what is in it",
          s"If it was changed on purpose, delete $place.")
      }
    }
  }

  private def placeOf(file: File): File = new File(file.getParentFile, s".${file.getName}.crc")

  private def sums(file: File, bytesPerSum: Int): Array[Byte] = {
    val checksum = DataChecksum.newDataChecksum(DataChecksum.Type.CRC32, bytesPerSum)
    val result = new ByteArrayOutputStream
    val output = new DataOutputStream(result)
    output.write(Version)
    output.writeInt(bytesPerSum)
    val input = new FileInputStream(file)
    try {
      val bytes = new Array[Byte](bytesPerSum)
      var size = input.readNBytes(bytes, 0, bytesPerSum)
      while (size > 0) {
        checksum.reset()
        checksum.update(bytes, 0, size)
        output.writeInt(checksum.getValue.toInt)
        size = input.readNBytes(bytes, 0, bytesPerSum)
      }
    } finally input.close()
    result.toByteArray
  }
}
