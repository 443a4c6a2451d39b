// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.channels.FileChannel.MapMode
import java.nio.file.StandardOpenOption.{READ, WRITE}
import java.nio.file.{Files, Path}

import io.netty.util.internal.PlatformDependent

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
