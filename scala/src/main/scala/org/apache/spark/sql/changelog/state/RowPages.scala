// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.io.OutputStream
import java.util.{ArrayDeque, Arrays}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

/**
 * Stores records of a key and a value, appended to pages of bytes.
 *
 * A written record never changes: a new value for its key is a new record. A row handed out therefore stays
 * valid, an earlier version needs only its addresses, and a snapshot can be written during the next batch.
 * Unreferenced records are freed page by page. When the heap is scarce, the oldest pages go to local files,
 * because frequently changed records are in the newest.
 *
 * {{{
 *   record   key size INT, value size INT, id INT, hash INT, key, value
 *   address  page number in the upper half, offset in the page in the lower; 0 means no record
 * }}}
 *
 * @param largestPage
 *   in bytes; pages start small, and a larger record has its own page
 */
private[state] final class RowPages(largestPage: Int, memory: StateMemory) {
  import RowPages._

  // numbers start at 1, so that no address is 0
  private var pages = new Array[Page](8)
  private var used = new Array[Int](8)
  private var wanted = new Array[Int](8)
  private var numPages = 1
  private var unusedNumbers = List.empty[Int]
  private var tail = 0

  // numbers of pages on the heap, the oldest first
  private val onHeap = new ArrayDeque[Int]
  private val files = new PageFiles(memory)

  private var numPageBytes = 0L

  /** The number of bytes in pages and in the lists of pages. */
  def numBytes: Long = numPageBytes + 16L * pages.length

  /** The number of bytes in needed records. */
  var numWantedBytes: Long = 0

  /** The numbers of bytes written and released since the last [[reclaim]]. */
  private var numNewBytes = 0L
  private var numReleasedBytes = 0L

  /** The unused part of the budget for moving bytes, which grows with changes. */
  private var allowance = 0L

  def append(id: Int, hash: Int, key: UnsafeRow, value: UnsafeRow): Long = {
    val (keySize, valueSize) = (key.getSizeInBytes, value.getSizeInBytes)
    val address = reserve(HeaderSize + keySize + valueSize)
    val page = pageOf(address)
    val (base, header) = (page.base, page.headerOf(address))
    Platform.putInt(base, header + KeySize, keySize)
    Platform.putInt(base, header + ValueSize, valueSize)
    Platform.putInt(base, header + Id, id)
    Platform.putInt(base, header + Hash, hash)
    key.writeToMemory(base, header + HeaderSize)
    value.writeToMemory(base, header + HeaderSize + keySize)
    address
  }

  /** Sets the id in a record. Views do not read ids. */
  def setIdAt(address: Long, id: Int): Unit = {
    val page = pageOf(address)
    Platform.putInt(page.base, page.headerOf(address) + Id, id)
  }

  private def idAt(address: Long): Int = pageOf(address).intAt(address, Id)

  def hashAt(address: Long): Int = pageOf(address).intAt(address, Hash)

  /** Points `row` to the key of a record. */
  def readKey(address: Long, row: UnsafeRow): UnsafeRow = {
    val page = pageOf(address)
    page.read(address, HeaderSize, page.intAt(address, KeySize), row)
  }

  /** Points `row` to the value of a record. */
  def readValue(address: Long, row: UnsafeRow): UnsafeRow = {
    val page = pageOf(address)
    val first = HeaderSize + page.intAt(address, KeySize)
    page.read(address, first, page.intAt(address, ValueSize), row)
  }

  def hasKey(address: Long, key: UnsafeRow): Boolean = {
    val page = pageOf(address)
    page.holds(address, HeaderSize, page.intAt(address, KeySize), key)
  }

  /** Marks a record as no longer needed. */
  def release(address: Long): Unit = {
    val size = sizeAt(address)
    numReleasedBytes += size
    want(address, -size)
  }

  /** Reverts [[release]]. */
  def restore(address: Long): Unit = {
    val size = sizeAt(address)
    numReleasedBytes -= size
    want(address, size)
  }

  /**
   * Frees pages with less than half of their bytes needed, after moving the needed records.
   *
   * The number of moved bytes is proportional to the bytes written and released, so that the work grows with
   * changes and not with state. Work beyond this budget is left for later calls.
   *
   * @param isWanted
   *   returns whether the record with an id and address is needed
   * @param move
   *   called with the id and the new address of each moved record
   */
  def reclaim(isWanted: (Int, Long) => Boolean, move: (Int, Long) => Unit): Unit = {
    val numChangedBytes = 2 * numNewBytes + numReleasedBytes
    allowance = math.min(allowance + numChangedBytes, numWantedBytes + numChangedBytes)
    var left = math.max(numChangedBytes, allowance / 4)
    var number = 1
    val end = numPages
    while (number < end && left > 0) {
      if (pages(number) != null && number != tail && wanted(number) < used(number) / 2) {
        left -= wanted(number)
        allowance = math.max(0, allowance - wanted(number))
        if (wanted(number) > 0) moveToFile(number, isWanted, move)
        drop(number)
      }
      number += 1
    }
    numNewBytes = 0
    numReleasedBytes = 0
    files.reclaim(pages)
    makeRoom(memory.exceedsLimit(0))
  }

  /** Returns the current records, unaffected by later writes. */
  def view(): View = new View(Arrays.copyOf(pages, numPages))

  private def moveToFile(
      number: Int,
      isWanted: (Int, Long) => Boolean,
      move: (Int, Long) => Unit): Unit = {
    val from = pages(number)
    var place = 0
    while (place < used(number)) {
      val address = addressOf(number, place)
      val size = sizeAt(address)
      val id = idAt(address)
      if (isWanted(id, address)) {
        val to = reserve(size)
        val page = pageOf(to)
        Platform.copyMemory(from.base, from.headerOf(address), page.base, page.headerOf(to), size)
        move(id, to)
      }
      place += size
    }
  }

  private def drop(number: Int): Unit = {
    val page = pages(number)
    numPageBytes -= page.size
    numWantedBytes -= wanted(number)
    if (page.isInFile) files.drop(page)
    else {
      memory.takeHeap(-page.size)
      onHeap.remove(number)
    }
    pages(number) = null
    used(number) = 0
    wanted(number) = 0
    unusedNumbers = number :: unusedNumbers
  }

  private def want(address: Long, size: Int): Unit = {
    wanted((address >>> 32).toInt) += size
    numWantedBytes += size
  }

  private def reserve(size: Int): Long = {
    if (tail == 0 || pages(tail).size - used(tail) < size) {
      tail = addPage(size)
      makeRoom(memory.exceedsLimit(0))
    }
    val place = used(tail)
    used(tail) += size
    wanted(tail) += size
    numWantedBytes += size
    numNewBytes += size
    addressOf(tail, place)
  }

  private def addPage(size: Int): Int = {
    val number = unusedNumbers match {
      case unused :: others =>
        unusedNumbers = others
        unused
      case Nil =>
        if (numPages == pages.length) {
          pages = Arrays.copyOf(pages, 2 * numPages)
          used = Arrays.copyOf(used, 2 * numPages)
          wanted = Arrays.copyOf(wanted, 2 * numPages)
        }
        numPages += 1
        numPages - 1
    }
    // a small state has small pages: at most as many bytes are free as are used
    val usual = math.max(SmallestPage.toLong, math.min(numPageBytes, largestPage.toLong)).toInt
    pages(number) = Page.onHeap(math.max(usual, size))
    numPageBytes += pages(number).size
    memory.takeHeap(pages(number).size)
    onHeap.add(number)
    number
  }

  /** Moves the oldest pages to files while the heap is full. The page being written stays. */
  def makeRoom(isFull: => Boolean): Unit = {
    var isPossible = true
    while (isPossible && onHeap.size > 1 && isFull) {
      val number = onHeap.poll()
      if (number == tail) onHeap.add(number)
      else
        files.moved(pages(number), used(number)) match {
          case Some(page) =>
            numPageBytes += page.size - pages(number).size
            memory.takeHeap(-pages(number).size)
            pages(number) = page
          case None =>
            onHeap.addFirst(number)
            isPossible = false
        }
    }
  }

  private def sizeAt(address: Long): Int = {
    val page = pageOf(address)
    HeaderSize + page.intAt(address, KeySize) + page.intAt(address, ValueSize)
  }

  private def pageOf(address: Long): Page = pages((address >>> 32).toInt)
}

private[state] object RowPages {
  private val SmallestPage = 4 * 1024

  private val KeySize = 0
  private val ValueSize = 4
  private val Id = 8
  private val Hash = 12
  private val HeaderSize = 16

  private def addressOf(number: Int, place: Int): Long = (number.toLong << 32) | place

  /** An immutable view of records. */
  final class View(pages: Array[Page]) {

    def keySizeOf(address: Long): Int = pageOf(address).intAt(address, KeySize)

    def valueSizeOf(address: Long): Int = pageOf(address).intAt(address, ValueSize)

    /** Writes bytes of a record, counted from the first byte of its key. The value follows the key. */
    def write(address: Long, first: Int, size: Int, output: OutputStream): Unit =
      pageOf(address).write(address, HeaderSize + first, size, output)

    /** Returns bytes of a record, counted from the first byte of its key. */
    def bytes(address: Long, first: Int, size: Int): Array[Byte] =
      pageOf(address).bytes(address, HeaderSize + first, size)

    private def pageOf(address: Long): Page = pages((address >>> 32).toInt)
  }
}
