// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.{BufferedOutputStream, DataOutputStream, FileNotFoundException, OutputStream}
import java.util.zip.{CRC32C, CheckedOutputStream}

import org.apache.commons.io.output.CloseShieldOutputStream
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, Path}

import org.apache.spark.internal.{LogKeys, Logging}
import org.apache.spark.io.CompressionCodec
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.state.StateStoreConf
import org.apache.spark.{SparkConf, SparkEnv}

import org.apache.spark.sql.changelog.compat.RowChecksums
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.errors.{ChangelogErrors, ChangelogRuntimeException}

/**
 * The files of a store's versions in its checkpoint. The format is that of Spark's in-memory provider, which
 * can read and write the same files.
 *
 * `n.delta` holds the changes of version n, `n.snapshot` all entries of version n. A version consists of its
 * newest snapshot, if any, and the following deltas.
 */
private[state] final class StateFiles(
    directory: Path,
    layout: RowLayout,
    storeConf: StateStoreConf,
    hadoopConf: Configuration)
    extends Logging {
  import StateFiles._

  private lazy val manager = CheckpointFileManager.create(directory, hadoopConf)

  /** The same, once the directory exists. Spark's own manager of local files does not make it. */
  private lazy val writer = {
    manager.mkdirs(directory)
    manager
  }

  private lazy val codec = CompressionCodec.createCodec(
    Option(SparkEnv.get).map(_.conf).getOrElse(new SparkConf),
    storeConf.compressionCodec)

  def writeDelta(version: Long, changes: StateView): Unit = write(delta(version), changes)

  def writeSnapshot(version: Long, entries: StateView): Unit = write(snapshot(version), entries)

  /** Returns the modification time and length of a version's delta, which differ from those of a file in its place. */
  def stampOf(version: Long): Option[(Long, Long)] =
    try {
      val status = directory.getFileSystem(hadoopConf).getFileStatus(delta(version))
      Some((status.getModificationTime, status.getLen))
    } catch { case _: FileNotFoundException => None }

  def deleteSnapshot(version: Long): Unit = manager.delete(snapshot(version))

  /** Returns the versions with a snapshot. */
  def snapshots(): Seq[Long] = versions(SnapshotEnd)

  /**
   * Returns a table with the entries of a version.
   *
   * Skips an unreadable snapshot if the deltas suffice without it.
   */
  def read(version: Long, newTable: () => PagedTable): PagedTable = {
    val deltas = versions(DeltaEnd).toSet
    var damage: Option[ChangelogRuntimeException] = None

    def startFrom(start: Long): Option[PagedTable] =
      try {
        val table = newTable()
        if (start > 0) readInto(table, snapshot(start), isSnapshot = true)
        Some(table)
      } catch {
        case e: ChangelogRuntimeException =>
          logWarning(log"Could not read ${MDC(LogKeys.FILE_NAME, snapshot(start))}", e)
          damage = damage.orElse(Some(e))
          None
      }

    val starts = (0L +: snapshots().filter(_ <= version)).sorted.reverse
    val found = starts.iterator
      .filter(start => damage.isEmpty || (start + 1 to version).forall(deltas.contains))
      .map(start => startFrom(start).map((start, _)))
      .collectFirst { case Some(found) => found }
    found match {
      case Some((start, table)) =>
        val numbers = start + 1 to version
        numbers.findLast(!deltas.contains(_)).foreach { number =>
          throw runtime(
            "CHANGELOG_CHECKPOINT_FILE_MISSING",
            "file" -> delta(number).toString,
            "version" -> version)
        }
        numbers.foreach(number => readInto(table, delta(number), isSnapshot = false))
        table
      case None => throw damage.get
    }
  }

  private def versions(end: String): Seq[Long] =
    try
      manager
        .list(directory, (path: Path) => path.getName.endsWith(end))
        .toSeq
        .flatMap(_.getPath.getName.stripSuffix(end).toLongOption)
    catch {
      case _: FileNotFoundException => Nil
    }

  private def readInto(table: PagedTable, file: Path, isSnapshot: Boolean): Unit =
    new StateFileReader(file, layout, RowChecksums.areWanted(storeConf), isSnapshot)
      .read(() => open(file), codec, table)

  private def open(file: Path): FSDataInputStream =
    try manager.open(file)
    catch {
      case e: FileNotFoundException =>
        throw ChangelogErrors.fileDamaged(file.toString, "the file is missing", cause = e)
    }

  private def write(path: Path, entries: StateView): Unit = {
    val file = writer.createAtomic(path, overwriteIfPossible = true)
    try {
      // close() publishes the file, and a stream calls close() even if its last bytes could not be written
      val shielded = CloseShieldOutputStream.wrap(file)
      new StateFileWriter(shielded, codec, RowChecksums.areWanted(storeConf)).write(entries)
      file.close()
    } catch {
      case e: Throwable =>
        file.cancel()
        throw e
    }
  }

  private def delta(version: Long): Path = new Path(directory, s"$version$DeltaEnd")

  private def snapshot(version: Long): Path = new Path(directory, s"$version$SnapshotEnd")
}

private[state] object StateFiles {
  private val DeltaEnd = ".delta"
  private val SnapshotEnd = ".snapshot"

  /** In place of a size: no more entries. */
  val End: Int = -1

  /** In place of the size of a value: the key was removed. */
  val Removed: Int = -1

  /** Precedes the checksum of the whole file, after the end of entries. Spark's provider stops reading before. */
  val ChecksumMark: Int = 0x53756d73
}

/**
 * Writes entries in the format of Spark's in-memory provider: key size, key, value size or -1, value; finally
 * -1. Then appends a checksum of the whole file, so that a damaged file is detected with any codec.
 */
private[state] final class StateFileWriter(
    file: OutputStream,
    codec: CompressionCodec,
    hasRowChecksums: Boolean) {
  private val checksum = new CRC32C
  private val output = new DataOutputStream(
    new BufferedOutputStream(
      new CheckedOutputStream(codec.compressedOutputStream(file), checksum),
      1 << 16))

  /** Writes the entries and closes the file. */
  def write(entries: StateView): Unit = {
    entries.foreachRemoved { address =>
      writeKey(entries.records, address, isRemoved = true)
      output.writeInt(StateFiles.Removed)
    }
    entries.foreachPut { address =>
      writeKey(entries.records, address, isRemoved = false)
      writeValue(entries.records, address)
    }
    output.writeInt(StateFiles.End)
    output.flush()
    val sum = checksum.getValue.toInt
    output.writeInt(StateFiles.ChecksumMark)
    output.writeInt(sum)
    output.close()
  }

  private def writeKey(records: RowPages.View, address: Long, isRemoved: Boolean): Unit = {
    val size = records.keySizeOf(address)
    if (isRemoved && hasRowChecksums) {
      writeBytes(RowChecksums.ofRemoved(records.bytes(address, 0, size)))
    } else {
      output.writeInt(size)
      records.write(address, 0, size, output)
    }
  }

  private def writeValue(records: RowPages.View, address: Long): Unit = {
    val keySize = records.keySizeOf(address)
    val size = records.valueSizeOf(address)
    if (hasRowChecksums) {
      val key = records.bytes(address, 0, keySize)
      writeBytes(RowChecksums.ofEntry(key, records.bytes(address, keySize, size)))
    } else {
      output.writeInt(size)
      records.write(address, keySize, size, output)
    }
  }

  private def writeBytes(bytes: Array[Byte]): Unit = {
    output.writeInt(bytes.length)
    output.write(bytes)
  }
}
