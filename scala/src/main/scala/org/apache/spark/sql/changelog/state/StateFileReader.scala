// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.{EOFException, InputStream, InterruptedIOException}
import java.nio.channels.ClosedByInterruptException
import java.util.Arrays
import java.util.zip.CRC32C

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FSError, Path}

import org.apache.spark.SparkRuntimeException
import org.apache.spark.io.{CompressionCodec, LZ4CompressionCodec}
import org.apache.spark.unsafe.Platform

import org.apache.spark.sql.changelog.compat.RowChecksums
import org.apache.spark.sql.changelog.errors.{ChangelogErrors, ChangelogRuntimeException}

/**
 * Reads the entries of a file directly into a table. Spark's provider or this project wrote the file.
 *
 * Fails with the file's name if sizes or checksums show that the file is damaged.
 */
private[state] final class StateFileReader(
    file: Path,
    layout: RowLayout,
    hasRowChecksums: Boolean,
    isSnapshot: Boolean) {
  import StateFileReader._

  private val verifier =
    if (hasRowChecksums) Some(new RowChecksums.Verifier(layout.storeId.toString)) else None
  private val checksum = new CRC32C
  private val number = new Array[Byte](4)
  private var keyBytes = new Array[Byte](256)
  private var valueBytes = new Array[Byte](256)
  private val key = layout.newKey()
  private val value = layout.newValue()
  private var numEntries = 0L
  private var input: InputStream = _

  /** Applies the file's entries to a table. */
  def read(open: () => InputStream, codec: CompressionCodec, table: PagedTable): Unit = {
    // verifies the whole file before its rows are used; LZ4 verifies each block while reading
    if (!codec.isInstanceOf[LZ4CompressionCodec]) read(open(), codec, _ => ())
    read(
      open(),
      codec,
      isRemoved => {
        if (isRemoved) table.remove(key)
        else {
          if (numEntries == 0) layout.check(key, value)
          table.put(key, value)
        }
        // entries read from a file need no rollback
        if (numEntries % AtOnce == 0) table.begin()
      })
    table.begin()
  }

  /**
   * Reads all entries.
   *
   * @param use
   *   called after each entry, with whether the entry is a removal
   */
  private def read(opened: InputStream, codec: CompressionCodec, use: Boolean => Unit): Unit =
    try {
      checksum.reset()
      numEntries = 0
      input = opened
      input = codec.compressedInputStream(opened)
      while (readEntry(use)) numEntries += 1
      verifyChecksum()
    } catch {
      // of rows with another schema, or with the file's name
      case e: SparkRuntimeException => throw e
      case e @ (_: InterruptedIOException | _: ClosedByInterruptException) => throw e
      case e: EOFException =>
        throw damaged(s"the file ends within entry ${numEntries + 1}", e)
      case e: FSError => throw damaged(e.getMessage, e)
      case NonFatal(e) =>
        throw damaged(s"entry ${numEntries + 1} cannot be read: ${e.getMessage}", e)
    } finally {
      // the codec's stream holds native memory; with a damaged file, its close may fail
      try input.close()
      catch { case NonFatal(_) => }
      opened.close()
    }

  private def readEntry(use: Boolean => Unit): Boolean = {
    val keySize = readNumber()
    if (keySize == StateFiles.End) false
    else {
      keyBytes = readBytes(keySize, keyBytes)
      val valueSize = readNumber()
      val start = sumSize
      if (valueSize == StateFiles.Removed && !isSnapshot) {
        checkSize("key", keySize - start, layout.canBeKey)
        verify(keyBytes, start, keySize, None)
        key.pointTo(keyBytes, Platform.BYTE_ARRAY_OFFSET + start, keySize - start)
        use(true)
      } else {
        checkSize("key", keySize, layout.canBeKey)
        checkSize("value", valueSize - start, layout.canBeValue)
        valueBytes = readBytes(valueSize, valueBytes)
        verify(valueBytes, start, valueSize, Some(keySize))
        key.pointTo(keyBytes, Platform.BYTE_ARRAY_OFFSET, keySize)
        value.pointTo(valueBytes, Platform.BYTE_ARRAY_OFFSET + start, valueSize - start)
        use(false)
      }
      true
    }
  }

  /** The size of the checksum before the bytes of a row. */
  private def sumSize: Int = if (hasRowChecksums) RowChecksums.Size else 0

  private def verify(bytes: Array[Byte], start: Int, end: Int, keySize: Option[Int]): Unit =
    verifier.foreach { verifier =>
      val expected = Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET)
      keySize match {
        case Some(size) => verifier.checkEntry(keyBytes, size, bytes, start, end, expected)
        case None => verifier.checkRemoved(bytes, start, end, expected)
      }
    }

  private def checkSize(part: String, size: Int, isPossible: Int => Boolean): Unit =
    if (!isPossible(size)) {
      throw damaged(
        s"the $part of entry ${numEntries + 1} has $size bytes, which is impossible for a row; " +
          "spark.sql.streaming.stateStore.rowChecksum.enabled and compression.codec must have " +
          "the values with which the file was written")
    }

  /** Verifies the checksum at the end, if present. Spark's provider writes no checksum. */
  private def verifyChecksum(): Unit = {
    val actual = checksum.getValue.toInt
    val isOurs =
      try readNumber() == StateFiles.ChecksumMark
      catch { case _: EOFException => false }
    if (isOurs && readNumber() != actual) {
      throw damaged("the checksum does not match the content")
    }
  }

  private def readNumber(): Int = {
    readFully(number, 0, 4)
    ((number(0) & 0xff) << 24) | ((number(1) & 0xff) << 16) |
      ((number(2) & 0xff) << 8) | (number(3) & 0xff)
  }

  private def readBytes(size: Int, buffer: Array[Byte]): Array[Byte] = {
    if (size < 0) throw damaged(s"entry ${numEntries + 1} has $size bytes, which is impossible")
    var bytes = buffer
    var place = 0
    // allocates in steps, so that a wrong size does not allocate the whole size at once
    while (place < size) {
      val more = math.min(size - place, LargestStep)
      if (bytes.length < place + more) {
        bytes = Arrays.copyOf(bytes, math.min(size.toLong, 2L * (place + more)).toInt)
      }
      readFully(bytes, place, more)
      place += more
    }
    bytes
  }

  private def readFully(bytes: Array[Byte], start: Int, size: Int): Unit = {
    if (input.readNBytes(bytes, start, size) < size) throw new EOFException
    checksum.update(bytes, start, size)
  }

  private def damaged(fault: String, cause: Throwable = null): ChangelogRuntimeException =
    ChangelogErrors.fileDamaged(file.toString, fault, cause = cause)
}

private object StateFileReader {

  /** The number of entries after which the table frees its memory for rollbacks. */
  private val AtOnce = 4096

  private val LargestStep = 1 << 20
}
