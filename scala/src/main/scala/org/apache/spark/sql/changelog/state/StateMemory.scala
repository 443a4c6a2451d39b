// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.IOException
import java.lang.ref.Cleaner
import java.nio.file.Path
import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}

import org.apache.spark.internal.LogKeys.STATE_STORE_ID
import org.apache.spark.internal.Logging

/**
 * The memory of a table: the heap while there is room, then files on a local disk.
 *
 * All tables of a process share `limit` bytes of the heap. When the tables need more, those above their share
 * spill to files.
 *
 * @param limit
 *   in bytes
 * @param directory
 *   returns the directory for files
 * @param owner
 *   the name of the table's owner, for the log
 * @param fileSize
 *   the size of a file of pages, in bytes
 */
private[state] final class StateMemory(
    limit: Long,
    val directory: () => Path,
    owner: => String,
    val fileSize: Int = StateMemory.FileSize)
    extends AutoCloseable
    with Logging {
  import StateMemory._

  private val used = new UsedMemory
  // frees the memory of a table that was never closed, when no object refers to the table
  private val forgotten = cleaner.register(this, used)
  private var isLogged = false
  private var isDiskFull = false

  /** The number of bytes in local files, including unneeded bytes that still take room. */
  def numFileBytes: Long = used.files.get

  /** Returns whether the heap has no room for `more` bytes of this table. */
  def exceedsLimit(more: Long): Boolean = !isDiskFull && exceeds(limit, more)

  /** Returns whether the heap of all tables, and this table's share of it, exceed half of the limit. */
  def exceedsHalf: Boolean = exceeds(limit / 2, 0)

  private def exceeds(limit: Long, more: Long): Boolean =
    heap.get + more > limit && used.heap.get + more > limit / math.max(1, tables.get)

  /** Returns whether an array of this size may find no contiguous room in a heap with enough room in total. */
  private def isTooLargeForHeap(size: Long): Boolean = !isDiskFull && size > limit / LargestShare

  def takeHeap(bytes: Long): Unit = used.takeHeap(bytes)

  def takeFile(bytes: Long): Unit = {
    used.files.addAndGet(bytes)
    ()
  }

  /** Returns a longer block with the content of `before`, and frees `before`. */
  def grown(before: LongBlock, length: Int): LongBlock = {
    val block = zeros(length)
    before.copyTo(block, math.min(before.length, length))
    free(before)
    block
  }

  def zeros(length: Int): LongBlock = {
    val block = temporaryZeros(length)
    if (block.isInFile) takeFile(block.numBytes) else takeHeap(block.numBytes)
    block
  }

  /** Returns zeros for a short time, which are not counted. */
  def temporaryZeros(length: Int): LongBlock = {
    val size = 8L * length
    val inFile =
      if (size < fileSize / 1024 || size > Int.MaxValue) None
      else if (exceedsLimit(size) || isTooLargeForHeap(size))
        intoFile(LongBlock.inFile(length, directory()))
      else None
    inFile.getOrElse(LongBlock.onHeap(length))
  }

  def free(block: LongBlock): Unit =
    if (block.isInFile) takeFile(-block.numBytes) else takeHeap(-block.numBytes)

  /** Writes to a file. If the disk is full, returns no result, and the data stays on the heap until the next batch. */
  def intoFile[T](write: => T): Option[T] =
    try {
      val written = write
      if (!isLogged) {
        isLogged = true
        logInfo(
          log"The heap is full: state of ${MDC(STATE_STORE_ID, owner)} moves to local files")
      }
      Some(written)
    } catch {
      case e: IOException =>
        isDiskFull = true
        logWarning(
          log"State of ${MDC(STATE_STORE_ID, owner)} stays on the full heap, without local files",
          e)
        None
    }

  /** Begins a batch: tries again to write to the disk. */
  def begin(): Unit = isDiskFull = false

  override def close(): Unit = forgotten.clean()
}

private[state] object StateMemory {

  /** The heap bytes of all tables of this process, and the number of tables. */
  val heap = new AtomicLong
  private val tables = new AtomicInteger
  private val cleaner = Cleaner.create()

  private val FileSize = 64 * 1024 * 1024

  /** The largest share of the limit for a single array, as a divisor. */
  private val LargestShare = 16

  /** Returns memory on the heap without a limit. */
  def unlimited: StateMemory = new StateMemory(Long.MaxValue, () => sys.error("no limit"), "")

  /** The memory used by a table. */
  private final class UsedMemory extends Runnable {
    val heap = new AtomicLong
    val files = new AtomicLong
    private var isOver = false
    tables.incrementAndGet()

    def takeHeap(bytes: Long): Unit = synchronized {
      if (!isOver) {
        heap.addAndGet(bytes)
        StateMemory.heap.addAndGet(bytes)
      }
      ()
    }

    override def run(): Unit = synchronized {
      if (!isOver) {
        isOver = true
        StateMemory.heap.addAndGet(-heap.get)
        tables.decrementAndGet()
      }
      ()
    }
  }
}
