// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.lang.ref.Reference
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.channels.FileChannel.MapMode
import java.nio.file.StandardOpenOption.{READ, WRITE}
import java.nio.file.{Files, Path}
import java.util.Objects

import scala.collection.mutable

import io.netty.util.internal.PlatformDependent

import org.apache.spark.unsafe.Platform

/**
 * The pages of a table in local files.
 *
 * Room in a file is used once, so that a reader of a removed page, such as the writer of a snapshot, still
 * finds the page. A file is freed with its last page. When less than half of a file is needed, its remaining
 * pages move to another file.
 */
private[state] final class PageFiles(memory: StateMemory) {
  private var current: PageFile = _
  // full files with needed pages
  private val full = mutable.LinkedHashSet.empty[PageFile]

  /** Copies a page to a file. Returns no page if the file cannot be written. */
  def moved(page: Page, size: Int): Option[Page] = memory.intoFile {
    val file = fileFor(size)
    val inFile = page.movedTo(file, size)
    file.numWantedBytes += size
    memory.takeFile(size)
    inFile
  }

  def drop(page: Page): Unit = {
    val file = page.file
    file.numWantedBytes -= page.size
    if (file.numWantedBytes == 0 && full.remove(file)) memory.takeFile(-file.numBytes)
  }

  /** Moves the needed pages of a file, if they are less than half of the file. */
  def reclaim(pages: Array[Page]): Unit =
    full.find(file => file.numWantedBytes < file.capacity / 2).foreach { file =>
      var number = 0
      while (number < pages.length) {
        val page = pages(number)
        if (page != null && (page.file eq file)) {
          moved(page, page.size).foreach { other =>
            pages(number) = other
            drop(page)
          }
        }
        number += 1
      }
    }

  private def fileFor(size: Int): PageFile = {
    if (current == null || !current.hasRoomFor(size)) {
      val next = new PageFile(memory.directory(), math.max(memory.fileSize, size))
      if (current != null) {
        current.finish()
        if (current.numWantedBytes > 0) full += current
        else memory.takeFile(-current.numBytes)
      }
      current = next
    }
    current
  }
}

/** A file of pages. */
private[state] final class PageFile(directory: Path, capacity: Long)
    extends LocalFile(directory, capacity) {

  /** The number of bytes in needed pages. */
  var numWantedBytes: Long = 0
}

/**
 * A file on a local disk, read through memory mapping. The operating system caches the file as far as memory is
 * available.
 *
 * The file has no name once it is open. Its room is freed when no object refers to this object, or when the
 * process ends. Writes go through the file, not through the mapping: a full disk then causes an exception.
 *
 * @param capacity
 *   in bytes, at most 2 GiB; disk room is taken as bytes are written
 */
private[state] class LocalFile(directory: Path, val capacity: Long) {
  private var end = 0L
  private val (channel, mapped) = {
    val path = Files.createTempFile(directory, "state-", ".pages")
    val channel = FileChannel.open(path, READ, WRITE)
    try (channel, channel.map(MapMode.READ_WRITE, 0, capacity))
    catch {
      case e: Throwable =>
        channel.close()
        throw e
    } finally {
      // if an open file cannot be deleted, the file is deleted when the process ends
      if (!path.toFile.delete()) path.toFile.deleteOnExit()
    }
  }
  private val address = PlatformDependent.directBufferAddress(mapped)

  def numBytes: Long = end

  def hasRoomFor(size: Int): Boolean = end + size <= capacity

  /** Appends bytes and returns their address in memory. */
  def append(bytes: Array[Byte], size: Int): Long = {
    val buffer = ByteBuffer.wrap(bytes, 0, size)
    var place = end
    while (buffer.hasRemaining) place += channel.write(buffer, place)
    val start = address + end
    end = place
    start
  }

  /** Closes the file for appending. */
  def finish(): Unit = channel.close()
}

/**
 * An array of longs, on the heap or in a local file.
 *
 * @param base
 *   the array; null for an array in a file
 */
private[state] final class LongBlock private (
    private val base: Array[Long],
    private val offset: Long,
    val length: Int,
    // a reference that keeps the file open
    file: LocalFile) {

  def isInFile: Boolean = file != null

  def numBytes: Long = 8L * length

  def apply(index: Int): Long = {
    val value = Platform.getLong(base, placeOf(index))
    Reference.reachabilityFence(this)
    value
  }

  def update(index: Int, value: Long): Unit = {
    Platform.putLong(base, placeOf(index), value)
    Reference.reachabilityFence(this)
  }

  def copyTo(other: LongBlock, count: Int): Unit = {
    require(count <= length && count <= other.length)
    Platform.copyMemory(base, offset, other.base, other.offset, 8L * count)
  }

  // checked, because a zombie task may ask for an index that no longer exists
  private def placeOf(index: Int): Long = offset + 8L * Objects.checkIndex(index, length)
}

private[state] object LongBlock {

  /** Returns zeros on the heap. */
  def onHeap(length: Int): LongBlock =
    new LongBlock(new Array[Long](length), Platform.LONG_ARRAY_OFFSET.toLong, length, null)

  /** Returns zeros in a file of their own. */
  def inFile(length: Int, directory: Path): LongBlock = {
    val size = 8L * length
    val file = new LocalFile(directory, size)
    val zeros = new Array[Byte](math.min(size, ChunkSize).toInt)
    var left = size
    var address = 0L
    while (left > 0) {
      val chunk = math.min(left, zeros.length).toInt
      val start = file.append(zeros, chunk)
      if (left == size) address = start
      left -= chunk
    }
    file.finish()
    new LongBlock(null, address, length, file)
  }

  private val ChunkSize = 1024 * 1024L
}
