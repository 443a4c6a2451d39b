// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair
import org.apache.spark.sql.types.StructType

/**
 * The entries of a state store in memory, by key and by a prefix of the key.
 *
 * An entry has an id for its lifetime. The entries with an equal prefix form a chain. The table has a single
 * version, changed in place. A batch can be rolled back until the next batch begins: the table records the
 * address of each touched entry's previous record.
 *
 * @param numPrefixColumns
 *   the number of key columns in the prefix; 0 without prefix scans
 * @param largestPage
 *   in bytes
 */
private[state] final class PagedTable(
    keySchema: StructType,
    numValueColumns: Int,
    numPrefixColumns: Int,
    memory: StateMemory = StateMemory.unlimited,
    largestPage: Int = PagedTable.LargestPage)
    extends AutoCloseable {
  private val numKeyColumns = keySchema.length
  private val hasPrefixes = numPrefixColumns > 0
  // two projections: for the given prefix, and for the stored prefixes compared with it
  private val prefixOf = prefixProjection()
  private val storedPrefixOf = prefixProjection()
  private val pages = new RowPages(largestPage, memory)
  private var slots = new HashSlots(memory)
  private var prefixSlots = new HashSlots(memory)
  private val storedKey = new UnsafeRow(numKeyColumns)
  private val ids = new EntryIds(hasChains = hasPrefixes, memory)
  private val touched = new TouchedEntries(memory)

  private var numEntries = 0

  def size: Int = numEntries

  /** The number of bytes held, in memory and in local files. */
  def numBytes: Long = pages.numBytes + slots.numBytes + prefixSlots.numBytes +
    ids.numBytes + touched.numBytes

  /** The number of bytes held in local files. */
  def numFileBytes: Long = memory.numFileBytes

  /** The number of bytes in current entries. */
  def numEntryBytes: Long = pages.numWantedBytes

  def get(key: UnsafeRow): UnsafeRow = {
    val id = find(key, key.hashCode)
    if (id < 0) null else pages.readValue(ids.addressOf(id), new UnsafeRow(numValueColumns))
  }

  def put(key: UnsafeRow, value: UnsafeRow): Unit = {
    val hash = key.hashCode
    val id = find(key, hash)
    if (id >= 0) {
      val before = ids.addressOf(id)
      touched.add(id, before)
      ids.setAddress(id, pages.append(id, pages.hashAt(before), key, value))
      pages.release(before)
    } else {
      val added = ids.take()
      touched.add(added, 0)
      val prefix = if (hasPrefixes) prefixOf(key) else null
      val prefixHash = if (hasPrefixes) prefix.hashCode else 0
      ids.setAddress(added, pages.append(added, prefixHash, key, value))
      link(added, hash, prefix)
    }
  }

  /** Removes a key and returns whether the key existed. */
  def remove(key: UnsafeRow): Boolean = {
    val hash = key.hashCode
    val id = find(key, hash)
    if (id >= 0) {
      touched.add(id, ids.addressOf(id))
      unlink(id, hash)
    }
    id >= 0
  }

  /** Returns all entries. The caller may change the table while iterating. */
  def entries(): Iterator[UnsafeRowPair] = new Entries {
    private val end = ids.end

    override protected def first: Int = 0

    override protected def isOver(id: Int): Boolean = id >= end

    override protected def following(id: Int): Int = id + 1
  }

  /** Returns the entries with a prefix. The caller may change the table while iterating. */
  def entries(prefix: UnsafeRow): Iterator[UnsafeRowPair] = new Entries {
    override protected def first: Int = {
      val place = findPrefix(prefix, prefix.hashCode)
      if (place < 0) -1 else prefixSlots.idAt(place)
    }

    override protected def isOver(id: Int): Boolean = id < 0

    // ids removed in this batch are not reused before the next, and keep their next id
    override protected def following(id: Int): Int = ids.next(id)
  }

  /** Begins a batch. Earlier changes can no longer be rolled back. */
  def begin(): Unit = {
    memory.begin()
    var index = 0
    while (index < touched.size) {
      val id = touched.idAt(index)
      if (ids.addressOf(id) == 0) ids.freeId(id)
      index += 1
    }
    touched.clear()
    if (ids.areSparse(numEntries)) shrink()
    pages.reclaim(ids.isAt, ids.setAddress)
  }

  /** Reverts the changes since [[begin]]. */
  def rollback(): Unit = {
    // backwards: a key removed and added again has two ids
    var index = touched.size - 1
    while (index >= 0) {
      val id = touched.idAt(index)
      val before = touched.addressBeforeAt(index)
      if (ids.addressOf(id) != 0 && before != 0) {
        if (ids.addressOf(id) != before) {
          pages.release(ids.addressOf(id))
          pages.restore(before)
          ids.setAddress(id, before)
        }
      } else if (before != 0) {
        pages.restore(before)
        ids.setAddress(id, before)
        val key = pages.readKey(before, storedKey)
        val hash = key.hashCode
        link(id, hash, if (hasPrefixes) prefixOf(key) else null)
      } else {
        if (ids.addressOf(id) != 0)
          unlink(id, pages.readKey(ids.addressOf(id), storedKey).hashCode)
        ids.freeId(id)
      }
      index -= 1
    }
    touched.clear()
  }

  /** Returns the changes since [[begin]]. */
  def changes(): StateView = {
    // addresses of put entries from the start, addresses of removed entries from the end
    val addresses = memory.temporaryZeros(touched.size)
    var (numPut, end) = (0, addresses.length)
    var index = 0
    while (index < touched.size) {
      val before = touched.addressBeforeAt(index)
      val after = ids.addressOf(touched.idAt(index))
      if (after != 0 && after != before) {
        addresses(numPut) = after
        numPut += 1
      } else if (after == 0 && before != 0) {
        end -= 1
        addresses(end) = before
      }
      index += 1
    }
    new StateView(pages.view(), addresses, numPut, end)
  }

  /** Returns the current entries, unaffected by later changes. */
  def view(): StateView = {
    val addresses = ids.allAddresses
    new StateView(pages.view(), addresses, addresses.length, addresses.length)
  }

  /** Moves pages to files while the heap is half full. Returns whether the heap has room for the indexes. */
  def moveToFiles(): Boolean = {
    pages.makeRoom(memory.exceedsHalf)
    !memory.exceedsLimit(0)
  }

  /** Frees the table's memory. */
  override def close(): Unit = memory.close()

  private def prefixProjection(): UnsafeProjection =
    UnsafeProjection.create(keySchema.take(numPrefixColumns).zipWithIndex.map {
      case (field, ordinal) => BoundReference(ordinal, field.dataType, field.nullable)
    })

  private def find(key: UnsafeRow, hash: Int): Int = {
    var place = slots.first(hash)
    while (place >= 0 && !pages.hasKey(ids.addressOf(slots.idAt(place)), key)) {
      place = slots.next(place, hash)
    }
    if (place < 0) -1 else slots.idAt(place)
  }

  private def findPrefix(prefix: UnsafeRow, hash: Int): Int = {
    var place = prefixSlots.first(hash)
    while (place >= 0 && !hasPrefix(prefixSlots.idAt(place), prefix)) {
      place = prefixSlots.next(place, hash)
    }
    place
  }

  private def hasPrefix(id: Int, prefix: UnsafeRow): Boolean =
    storedPrefixOf(pages.readKey(ids.addressOf(id), storedKey)) == prefix

  private def link(id: Int, hash: Int, prefix: UnsafeRow): Unit = {
    slots.add(hash, id)
    if (hasPrefixes) linkPrefix(id, prefix, pages.hashAt(ids.addressOf(id)))
    numEntries += 1
  }

  private def linkPrefix(id: Int, prefix: UnsafeRow, hash: Int): Unit = {
    val place = findPrefix(prefix, hash)
    ids.linkBefore(id, if (place < 0) -1 else prefixSlots.idAt(place))
    if (place < 0) prefixSlots.add(hash, id) else prefixSlots.setIdAt(place, id)
  }

  private def unlink(id: Int, hash: Int): Unit = {
    slots.removeAt(placeOf(slots, id, hash))
    if (hasPrefixes) {
      ids.unlinkFromChain(id)
      if (ids.previous(id) < 0) {
        val next = ids.next(id)
        val place = placeOf(prefixSlots, id, pages.hashAt(ids.addressOf(id)))
        if (next >= 0) prefixSlots.setIdAt(place, next) else prefixSlots.removeAt(place)
      }
    }
    pages.release(ids.addressOf(id))
    ids.setAddress(id, 0)
    numEntries -= 1
  }

  private def placeOf(slots: HashSlots, id: Int, hash: Int): Int = {
    var place = slots.first(hash)
    while (slots.idAt(place) != id) place = slots.next(place, hash)
    place
  }

  /** Frees the memory of removed entries. */
  private def shrink(): Unit = {
    val newIds = ids.renumber(numEntries)
    slots = slots.renumbered(newIds)
    if (hasPrefixes) prefixSlots = prefixSlots.renumbered(newIds)
    var id = 0
    while (id < ids.end) {
      pages.setIdAt(ids.addressOf(id), id)
      id += 1
    }
  }

  /** Iterates over ids. */
  private abstract class Entries extends Iterator[UnsafeRowPair] {
    private val pair = new UnsafeRowPair
    private var current = -1
    private var isStarted = false
    private var isAhead = false

    protected def first: Int

    protected def isOver(id: Int): Boolean

    protected def following(id: Int): Int

    override def hasNext: Boolean = {
      if (!isAhead) {
        current = if (isStarted) following(current) else PagedTable.this.synchronized(first)
        isStarted = true
        while (!isOver(current) && ids.addressOf(current) == 0) current = following(current)
        isAhead = true
      }
      !isOver(current)
    }

    override def next(): UnsafeRowPair = {
      if (!hasNext) Iterator.empty.next()
      isAhead = false
      val address = ids.addressOf(current)
      pair.withRows(
        pages.readKey(address, new UnsafeRow(numKeyColumns)),
        pages.readValue(address, new UnsafeRow(numValueColumns)))
    }
  }
}

private[state] object PagedTable {

  /** Less than half a region of the G1 collector, so that a page is not a humongous object. */
  val LargestPage: Int = 256 * 1024

}
