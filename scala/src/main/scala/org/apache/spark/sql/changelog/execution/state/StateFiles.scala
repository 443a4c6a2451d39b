// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.state

import java.io.DataOutputStream

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path, PathFilter}

import org.apache.spark.io.CompressionCodec
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.{SparkConf, SparkEnv}

/**
 * Writes versions of a store as Spark's in-memory provider does, so that it reads them.
 *
 * A delta holds what a version changed, a snapshot holds all: key size, key, value size or -1,
 * value; at last -1.
 */
private[state] final class StateFiles(
    directory: Path,
    storeConf: StateStoreConf,
    hadoopConf: Configuration) {
  private lazy val manager = CheckpointFileManager.create(directory, hadoopConf)
  private lazy val codec = CompressionCodec.createCodec(
    Option(SparkEnv.get).map(_.conf).getOrElse(new SparkConf),
    storeConf.compressionCodec)

  def writeDelta(version: Long, changes: StateView): Unit =
    write(s"$version.delta", changes)

  def writeSnapshot(version: Long, entries: StateView): Unit =
    write(s"$version$SnapshotEnd", entries)

  /** The newest snapshot up to a version; 0 if there is none. */
  def snapshotUpTo(version: Long): Long = {
    val snapshots = new PathFilter {
      override def accept(path: Path): Boolean = path.getName.endsWith(SnapshotEnd)
    }
    manager
      .list(directory, snapshots)
      .map(_.getPath.getName.stripSuffix(SnapshotEnd).toLong)
      .filter(_ <= version)
      .maxOption
      .getOrElse(0L)
  }

  private val SnapshotEnd = ".snapshot"

  private def write(name: String, entries: StateView): Unit = {
    val file = manager.createAtomic(new Path(directory, name), overwriteIfPossible = true)
    try {
      val output = new DataOutputStream(codec.compressedOutputStream(file))
      entries.removed.foreach(writeKey(output, entries.records, _, isRemoved = true))
      entries.put.foreach { address =>
        if (address != 0) {
          writeKey(output, entries.records, address, isRemoved = false)
          writeValue(output, entries.records, address)
        }
      }
      output.writeInt(-1)
      output.close()
    } catch {
      case e: Throwable =>
        file.cancel()
        throw e
    }
  }

  private def writeKey(
      output: DataOutputStream,
      records: RowPages.View,
      address: Long,
      isRemoved: Boolean): Unit = {
    val size = records.keySizeOf(address)
    val place = records.placeOf(address)
    if (isRemoved && storeConf.rowChecksumEnabled) {
      val key = bytes(records, address, place, size)
      val checksum = KeyValueChecksum.create(key, None)
      writeBytes(output, KeyValueChecksumEncoder.encodeKeyRowWithChecksum(key, checksum))
    } else {
      output.writeInt(size)
      output.write(records.pageOf(address), place, size)
    }
    if (isRemoved) output.writeInt(-1)
  }

  private def writeValue(
      output: DataOutputStream,
      records: RowPages.View,
      address: Long): Unit = {
    val keySize = records.keySizeOf(address)
    val size = records.valueSizeOf(address)
    val place = records.placeOf(address)
    if (storeConf.rowChecksumEnabled) {
      val value = bytes(records, address, place + keySize, size)
      val checksum =
        KeyValueChecksum.create(bytes(records, address, place, keySize), Some(value))
      writeBytes(
        output,
        KeyValueChecksumEncoder.encodeSingleValueRowWithChecksum(value, checksum))
    } else {
      output.writeInt(size)
      output.write(records.pageOf(address), place + keySize, size)
    }
  }

  private def bytes(records: RowPages.View, address: Long, place: Int, size: Int): Array[Byte] =
    records.pageOf(address).slice(place, place + size)

  private def writeBytes(output: DataOutputStream, bytes: Array[Byte]): Unit = {
    output.writeInt(bytes.length)
    output.write(bytes)
  }
}
