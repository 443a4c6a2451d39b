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
 * The pages of a table that are in local files.
 *
 * Room in a file is used once: what reads a page that has gone meanwhile, as the writer of a snapshot does,
 * still finds it. A file goes with the last of its pages, and when less than half of it is
 * needed, those that are move to another one.
 */
private[state] final class PageFiles(memory: StateMemory) {
  private var current: PageFile = _
  // full ones that are needed
  private val full = mutable.LinkedHashSet.empty[PageFile]

  /** A page with the same bytes in a file; none if that can't be written. */
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

  /** Moves what is needed of one file, if that is less than half of it. */
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

  /** Bytes of the pages that are needed. */
  var numWantedBytes: Long = 0
}

/**
 * A file on a local disk that is read as memory. The operating system keeps as much of it in memory
 * as there is room for.
 *
 * It has no name once it is open, and gives its room back when nothing refers to this object any
 * more, or the process has ended. What is written to it goes through the file, not through memory: where
 * the disk is full that is an exception.
 *
 * @param capacity
 *   in bytes, at most 2 GiB; takes room on the disk as it is written to
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
      // where a file that is open can't be removed, it goes when the process ends
      if (!path.toFile.delete()) path.toFile.deleteOnExit()
    }
  }
  private val address = PlatformDependent.directBufferAddress(mapped)

  def numBytes: Long = end

  def hasRoomFor(size: Int): Boolean = end + size <= capacity

  /** Writes bytes behind those that are there, and gives their address in memory. */
  def append(bytes: Array[Byte], size: Int): Long = {
    val buffer = ByteBuffer.wrap(bytes, 0, size)
    var place = end
    while (buffer.hasRemaining) place += channel.write(buffer, place)
    val start = address + end
    end = place
    start
  }

  /** Says that nothing is appended any more. */
  def finish(): Unit = channel.close()
}

/**
 * An array of numbers, on the heap or in a local file.
 *
 * @param base
 *   the array; null if it is in the file
 */
private[state] final class LongBlock private (
    private val base: Array[Long],
    private val offset: Long,
    val length: Int,
    // refers to it, so that it stays
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

  // a task that is late may ask for what is no longer there
  private def placeOf(index: Int): Long = offset + 8L * Objects.checkIndex(index, length)
}

private[state] object LongBlock {

  /** Zeros on the heap. */
  def onHeap(length: Int): LongBlock =
    new LongBlock(new Array[Long](length), Platform.LONG_ARRAY_OFFSET.toLong, length, null)

  /** Zeros in a file of their own. */
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
