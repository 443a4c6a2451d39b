// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.{BufferedOutputStream, DataOutputStream, OutputStream}
import java.util.zip.{CRC32C, CheckedOutputStream}

import org.apache.spark.io.CompressionCodec

import org.apache.spark.sql.changelog.compat.RowChecksums

/**
 * Writes entries as Spark's in-memory provider does: key size, key, value size or -1, value; at
 * last -1. A checksum of all that follows, so that a file that has changed is not taken for state
 * whatever codec it was written with.
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

  /** Writes them and closes the file. */
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
