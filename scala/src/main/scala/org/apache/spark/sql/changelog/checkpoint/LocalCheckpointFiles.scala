// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import java.io.{
  BufferedOutputStream, ByteArrayOutputStream, DataOutputStream, File, FileInputStream,
  FileOutputStream, IOException
}
import java.nio.ByteBuffer
import java.nio.file.{FileAlreadyExistsException, FileSystemException, Files, StandardCopyOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.util.DataChecksum

import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

import org.apache.spark.sql.changelog.errors.ChangelogErrors

/**
 * Writes local files without starting a process for each file.
 *
 * Hadoop's local file system runs `chmod` and `readlink`. Both take much longer than writing the file, and a
 * batch writes at least seven files. The files have the permissions of the process's `umask`.
 *
 * Offsets, commits and further files written once have a separate checksum file. State files contain their
 * checksums, because two attempts may write a state file at the same time.
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
        if (target.exists || !renameNew(source, target)) {
          throw QueryExecutionErrors.renamePathAsExistsPathError(from, to)
        }
        LocalChecksum.write(target)
      }
    } finally Files.deleteIfExists(source.toPath)
  }

  /** Verifies the file's checksum, if present, and opens the file. */
  override def open(path: Path): FSDataInputStream = {
    LocalChecksum.check(local.pathToFile(path))
    local.getRaw.open(path)
  }
}

private object LocalCheckpointFiles {

  /** A file deleted after a failed write, for example on a full disk. */
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

  /** Returns false if the file exists. With hard links, only a single concurrent writer succeeds. */
  private def renameNew(source: File, target: File): Boolean = {
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
 * The checksum of a local file, in `.name.crc` beside the file, as written by Hadoop's file systems.
 */
private object LocalChecksum {
  private val Version = Array[Byte]('c', 'r', 'c', 0)
  private val BytesPerSum = 512

  /** The tolerated age, in ms, of a checksum older than the file. */
  private val ClockTolerance = 2000L

  def delete(file: File): Unit = Files.deleteIfExists(placeOf(file).toPath)

  /** Writes the checksum. Ignores errors, because the file is valid without a checksum. */
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
   * Fails for an empty file, because checkpoints have no empty files, or for a file with a wrong checksum.
   *
   * A file newer than the checksum was changed on purpose, by an editor or by a writer without checksums.
   */
  def check(file: File): Unit = {
    if (file.isFile && file.length == 0) {
      throw ChangelogErrors.fileDamaged(file.getPath, "the file is empty")
    }
    val place = placeOf(file)
    if (place.exists && place.lastModified + ClockTolerance >= file.lastModified) {
      val expected = Files.readAllBytes(place.toPath)
      val header = ByteBuffer.wrap(expected)
      val isKnown = expected.length >= 8 && expected.startsWith(Version) && header.getInt(
        4) > 0 && header.getInt(4) <= (1 << 20)
      if (!isKnown || !sums(file, header.getInt(4)).sameElements(expected)) {
        throw ChangelogErrors.fileDamaged(
          file.getPath,
          "the checksum does not match the content",
          s"If the file was changed on purpose, delete $place.")
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
