// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.lang.ref.Reference
import java.nio.file.Path
import java.util.Objects

import org.apache.spark.unsafe.Platform

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
