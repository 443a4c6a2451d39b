// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.util.Arrays

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
