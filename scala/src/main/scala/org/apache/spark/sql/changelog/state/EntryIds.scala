// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.util.{Arrays, BitSet}

/**
 * The ids of entries. For each id: the address of the entry's record, and the entries before and after it in
 * its chain.
 *
 * @param hasChains
 *   whether entries are in chains
 */
private[state] final class EntryIds(hasChains: Boolean, memory: StateMemory) {
  import EntryIds._

  // by id; the address 0 marks a missing entry
  private var addresses = memory.zeros(Smallest)
  // the previous id in the upper half, the next id in the lower
  private var links = memory.zeros(if (hasChains) Smallest else 0)
  private var numIds = 0
  private var freeIds = new Array[Int](Smallest)
  private var numFreeIds = 0

  def numBytes: Long =
    addresses.numBytes + links.numBytes + 4L * freeIds.length

  /** The upper bound of ids, exclusive. */
  def end: Int = numIds

  def addressOf(id: Int): Long = addresses(id)

  /** Returns whether an entry exists at this address. A record of a removed entry may have any id. */
  def isAt(id: Int, address: Long): Boolean = id < numIds && addresses(id) == address

  def setAddress(id: Int, address: Long): Unit = addresses(id) = address

  /** Returns the addresses of all ids, 0 for a missing entry. */
  def allAddresses: LongBlock = {
    val all = memory.temporaryZeros(numIds)
    addresses.copyTo(all, numIds)
    all
  }

  /** Returns the next id in the chain, below 0 after the last. A removed entry keeps its next id. */
  def next(id: Int): Int = links(id).toInt

  /** Returns the previous id in the chain, below 0 before the first. */
  def previous(id: Int): Int = (links(id) >>> 32).toInt

  /** Inserts an entry before the first of a chain, or starts a chain if `first` is below 0. */
  def linkBefore(id: Int, first: Int): Unit = {
    links(id) = link(-1, first)
    if (first >= 0) links(first) = link(id, next(first))
  }

  def unlinkFromChain(id: Int): Unit = {
    val (before, after) = (previous(id), next(id))
    if (after >= 0) links(after) = link(before, next(after))
    if (before >= 0) links(before) = link(previous(before), after)
  }

  def take(): Int =
    if (numFreeIds > 0) {
      numFreeIds -= 1
      freeIds(numFreeIds)
    } else {
      if (numIds == addresses.length) {
        addresses = memory.grown(addresses, 2 * numIds)
        if (hasChains) links = memory.grown(links, 2 * numIds)
      }
      numIds += 1
      numIds - 1
    }

  def freeId(id: Int): Unit = {
    if (numFreeIds == freeIds.length) freeIds = Arrays.copyOf(freeIds, 2 * numFreeIds)
    freeIds(numFreeIds) = id
    numFreeIds += 1
  }

  /** Returns whether most ids are unused, if there are many. */
  def areSparse(numEntries: Int): Boolean = numIds > SmallestSparse && numEntries < numIds / 4

  /** Renumbers the remaining entries from 0. Returns the new ids by old id, -1 for a missing entry. */
  def renumber(numEntries: Int): Array[Int] = {
    val newIds = new Array[Int](numIds)
    val newAddresses = memory.zeros(math.max(Smallest, 2 * numEntries))
    var count = 0
    var id = 0
    while (id < numIds) {
      if (addresses(id) != 0) {
        newIds(id) = count
        newAddresses(count) = addresses(id)
        count += 1
      } else newIds(id) = -1
      id += 1
    }
    if (hasChains) links = renumbered(newIds, newAddresses.length)
    memory.free(addresses)
    addresses = newAddresses
    numIds = count
    freeIds = new Array[Int](Smallest)
    numFreeIds = 0
    newIds
  }

  private def renumbered(newIds: Array[Int], length: Int): LongBlock = {
    val result = memory.zeros(length)
    def renumber(id: Int) = if (id < 0) -1 else newIds(id)
    var id = 0
    while (id < numIds) {
      if (newIds(id) >= 0) result(newIds(id)) = link(renumber(previous(id)), renumber(next(id)))
      id += 1
    }
    memory.free(links)
    result
  }
}

private object EntryIds {
  private def link(previous: Int, next: Int): Long =
    (previous.toLong << 32) | (next & 0xffffffffL)

  private val Smallest = 16

  /** The number of ids below which unused ids stay. */
  private val SmallestSparse = 1024
}

/**
 * Maps hashes to ids: open addressing with linear probing, eight bytes per slot.
 *
 * A slot holds the whole hash beside the id. A lookup of a missing key therefore rarely reads a record, and
 * growing needs no keys. Removal moves the following slots up and leaves no tombstones.
 */
private[state] final class HashSlots(memory: StateMemory) {
  private var slots = memory.zeros(16)
  private var mask = slots.length - 1
  private var size = 0

  def numBytes: Long = slots.numBytes

  /** Returns the first place with this hash; below 0 if there is none. */
  def first(hash: Int): Int = from(hash & mask, hash)

  /** Returns the next place with this hash; below 0 after the last. */
  def next(place: Int, hash: Int): Int = from((place + 1) & mask, hash)

  def idAt(place: Int): Int = slots(place).toInt - 1

  def setIdAt(place: Int, id: Int): Unit =
    slots(place) = (slots(place) & 0xffffffff00000000L) | (id + 1)

  def add(hash: Int, id: Int): Unit = {
    if (3L * (size + 1) > 2L * slots.length) grow()
    insert((hash.toLong << 32) | (id + 1))
    size += 1
  }

  def removeAt(place: Int): Unit = {
    var hole = place
    var slot = (hole + 1) & mask
    while (slots(slot) != 0) {
      val home = (slots(slot) >>> 32).toInt & mask
      // an entry may move up unless its home lies behind the hole
      if (((slot - home) & mask) >= ((slot - hole) & mask)) {
        slots(hole) = slots(slot)
        hole = slot
      }
      slot = (slot + 1) & mask
    }
    slots(hole) = 0
    size -= 1
  }

  /** Returns a map with new ids for the same hashes, of the minimum size. The caller must no longer use this map. */
  def renumbered(newIds: Array[Int]): HashSlots = {
    val copy = new HashSlots(memory)
    foreach(slots)(slot => copy.add((slot >>> 32).toInt, newIds(slot.toInt - 1)))
    memory.free(slots)
    copy
  }

  private def from(start: Int, hash: Int): Int = {
    var place = start
    while (slots(place) != 0) {
      if ((slots(place) >>> 32).toInt == hash) return place
      place = (place + 1) & mask
    }
    -1
  }

  private def insert(slot: Long): Unit = {
    var place = (slot >>> 32).toInt & mask
    while (slots(place) != 0) place = (place + 1) & mask
    slots(place) = slot
  }

  private def grow(): Unit = {
    val old = slots
    slots = memory.zeros(2 * old.length)
    mask = slots.length - 1
    foreach(old)(insert)
    memory.free(old)
  }

  private def foreach(slots: LongBlock)(use: Long => Unit): Unit = {
    var place = 0
    while (place < slots.length) {
      if (slots(place) != 0) use(slots(place))
      place += 1
    }
  }
}

/** The entries touched by a batch, in order, each with the address of its previous record. */
private[state] final class TouchedEntries(memory: StateMemory) {
  import TouchedEntries._

  private var isTouched = new BitSet
  private var ids = memory.zeros(16)
  private var addresses = memory.zeros(16)
  private var count = 0

  def size: Int = count

  def numBytes: Long = ids.numBytes + addresses.numBytes + isTouched.size / 8

  def idAt(index: Int): Int = ids(index).toInt

  /** Returns the address of the previous record; 0 for a new entry. */
  def addressBeforeAt(index: Int): Long = addresses(index)

  /** Adds an entry, unless the batch has touched it before. */
  def add(id: Int, addressBefore: Long): Unit =
    if (!isTouched.get(id)) {
      isTouched.set(id)
      if (count == ids.length) {
        ids = memory.grown(ids, 2 * count)
        addresses = memory.grown(addresses, 2 * count)
      }
      ids(count) = id
      addresses(count) = addressBefore
      count += 1
    }

  def clear(): Unit = {
    if (ids.length > Smallest && count < ids.length / 4) {
      // an earlier batch was much larger
      isTouched = new BitSet
      memory.free(ids)
      memory.free(addresses)
      ids = memory.zeros(math.max(Smallest, 2 * count))
      addresses = memory.zeros(ids.length)
    } else {
      var index = 0
      while (index < count) {
        isTouched.clear(idAt(index))
        index += 1
      }
    }
    count = 0
  }
}

private object TouchedEntries {

  /** The length above which unused memory is freed. */
  private val Smallest = 1024
}
