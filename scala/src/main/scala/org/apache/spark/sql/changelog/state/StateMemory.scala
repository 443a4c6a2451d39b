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
 * What one table may use: the heap, as long as there is room, then files on a local disk.
 *
 * All tables of a process together have `limit` bytes of the heap. Where they need more, those go to files
 * that have more than their share.
 *
 * @param limit
 *   in bytes
 * @param directory
 *   where files are to be
 * @param owner
 *   whose memory it is, for the log
 * @param fileSize
 *   how large a file of pages becomes, in bytes
 */
private[state] final class StateMemory(
    limit: Long,
    val directory: () => Path,
    owner: => String,
    val fileSize: Int = StateMemory.FileSize)
    extends AutoCloseable
    with Logging {
  import StateMemory._

  private val used = new Used
  // a table that nobody closes is forgotten when nothing refers to it
  private val forgotten = cleaner.register(this, used)
  private var isTold = false
  private var isDiskFull = false

  /** Bytes in local files, what is needed no more but still takes room among them. */
  def numFileBytes: Long = used.files.get

  /** Whether the heap has no room for so many more bytes of this table. */
  def isScarce(more: Long): Boolean =
    !isDiskFull && heap.get + more > limit && used.heap.get + more > limit / math.max(
      1,
      tables.get)

  /** Whether an array of so many bytes may find no room in one piece where there is enough of it in all. */
  private def isUnwieldy(size: Long): Boolean = !isDiskFull && size > limit / LargestShare

  def takeHeap(bytes: Long): Unit = used.takeHeap(bytes)

  def takeFile(bytes: Long): Unit = {
    used.files.addAndGet(bytes)
    ()
  }

  /** Zeros; what the block was given for is copied to it. */
  def grown(before: LongBlock, length: Int): LongBlock = {
    val block = zeros(length)
    before.copyTo(block, math.min(before.length, length))
    free(before)
    block
  }

  def zeros(length: Int): LongBlock = {
    val block = zerosForNow(length)
    if (block.isInFile) takeFile(block.numBytes) else takeHeap(block.numBytes)
    block
  }

  /** Zeros that are not needed for long, and not counted. */
  def zerosForNow(length: Int): LongBlock = {
    val size = 8L * length
    val inFile =
      if (size < fileSize / 1024 || size > Int.MaxValue) None
      else if (isScarce(size) || isUnwieldy(size))
        intoFile(LongBlock.inFile(length, directory()))
      else None
    inFile.getOrElse(LongBlock.onHeap(length))
  }

  def free(block: LongBlock): Unit =
    if (block.isInFile) takeFile(-block.numBytes) else takeHeap(-block.numBytes)

  /** Where there is no room on the disk either, things stay where they are until the next batch. */
  def intoFile[T](write: => T): Option[T] =
    try {
      val written = write
      if (!isTold) {
        isTold = true
        logInfo(
          log"The heap has no room for all of ${MDC(STATE_STORE_ID, owner)}: it goes to local files")
      }
      Some(written)
    } catch {
      case e: IOException =>
        isDiskFull = true
        logWarning(
          log"${MDC(STATE_STORE_ID, owner)} stays on the heap, which has no room for it",
          e)
        None
    }

  /** Says that another batch begins. */
  def begin(): Unit = isDiskFull = false

  override def close(): Unit = forgotten.clean()
}

private[state] object StateMemory {

  /** All that tables of this process have on the heap, in bytes, and how many tables there are. */
  private val heap = new AtomicLong
  private val tables = new AtomicInteger
  private val cleaner = Cleaner.create()

  private val FileSize = 64 * 1024 * 1024

  /** One array may have this part of the limit. */
  private val LargestShare = 16

  /** On the heap without a limit. */
  def unlimited: StateMemory = new StateMemory(Long.MaxValue, () => sys.error("no limit"), "")

  /** What one table has. */
  private final class Used extends Runnable {
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
