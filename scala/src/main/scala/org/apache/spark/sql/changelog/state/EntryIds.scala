// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.util.{Arrays, BitSet}

/**
 * The ids of entries: where the record of each is, and which entries come before and after it in
 * its chain.
 *
 * @param hasChains
 *   whether entries are in chains
 */
private[state] final class EntryIds(hasChains: Boolean, memory: StateMemory) {
  import EntryIds._

  // by id; an address of 0 says that there is no such entry
  private var addresses = memory.zeros(Smallest)
  // the id before in the upper half, the next one in the lower
  private var links = memory.zeros(if (hasChains) Smallest else 0)
  private var numIds = 0
  private var freeIds = new Array[Int](Smallest)
  private var numFreeIds = 0

  def numBytes: Long =
    addresses.numBytes + links.numBytes + 4L * freeIds.length

  /** Ids are below it. */
  def end: Int = numIds

  def addressOf(id: Int): Long = addresses(id)

  /** Whether there is such an entry, at this address. Records of what has gone have any id. */
  def isAt(id: Int, address: Long): Boolean = id < numIds && addresses(id) == address

  def setAddress(id: Int, address: Long): Unit = addresses(id) = address

  /** All addresses, those of no entry among them. */
  def allAddresses: LongBlock = {
    val all = memory.zerosForNow(numIds)
    addresses.copyTo(all, numIds)
    all
  }

  /** The next in its chain, below 0 if there is none. An entry that has gone still leads on. */
  def next(id: Int): Int = links(id).toInt

  /** The one before in its chain, below 0 if it is the first. */
  def previous(id: Int): Int = (links(id) >>> 32).toInt

  /** Puts an entry before the first of a chain, or begins one. */
  def putBefore(id: Int, first: Int): Unit = {
    links(id) = link(-1, first)
    if (first >= 0) links(first) = link(id, next(first))
  }

  def takeFromChain(id: Int): Unit = {
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

  def giveBack(id: Int): Unit = {
    if (numFreeIds == freeIds.length) freeIds = Arrays.copyOf(freeIds, 2 * numFreeIds)
    freeIds(numFreeIds) = id
    numFreeIds += 1
  }

  /** Whether most of many ids are no longer needed. */
  def areSparse(numEntries: Int): Boolean = numIds > SmallestSparse && numEntries < numIds / 4

  /** Gives the entries that are left new ids, from 0 on, and tells which. By old id. */
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

  /** Of fewer ids those that are not needed are kept. */
  private val SmallestSparse = 1024
}

/**
 * Ids by hash: open addressing with linear probing, eight bytes a slot.
 *
 * A slot holds the whole hash beside the id, so that what is not there is seldom looked at, and
 * growing needs no keys. Slots behind a removed one move up; there are no tombstones.
 */
private[state] final class HashSlots(memory: StateMemory) {
  private var slots = memory.zeros(16)
  private var mask = slots.length - 1
  private var size = 0

  def numBytes: Long = slots.numBytes

  /** The first place with this hash; below 0 if there is none. */
  def first(hash: Int): Int = from(hash & mask, hash)

  /** The next place with this hash. */
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

  /** With other ids for the same hashes, and as much room as they need; this is used no more. */
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

/** Which entries a batch has touched, in order, each with the address of its record before. */
private[state] final class TouchedEntries(memory: StateMemory) {
  import TouchedEntries._

  private var isTouched = new BitSet
  private var ids = memory.zeros(16)
  private var addresses = memory.zeros(16)
  private var count = 0

  def size: Int = count

  def numBytes: Long = ids.numBytes + addresses.numBytes + isTouched.size / 8

  def idAt(index: Int): Int = ids(index).toInt

  /** 0 if there was no such entry. */
  def addressBeforeAt(index: Int): Long = addresses(index)

  /** Takes note of an entry, if it is the first time. */
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
      // a batch before was much larger
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

  /** From where on what is no longer needed is given back. */
  private val Smallest = 1024
}
