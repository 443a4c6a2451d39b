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
private[state] final class EntryIds(hasChains: Boolean) {
  import EntryIds._

  // by id; an address of 0 says that there is no such entry
  private var addresses = new Array[Long](Smallest)
  private var nextIds = new Array[Int](if (hasChains) Smallest else 0)
  private var previousIds = new Array[Int](nextIds.length)
  private var numIds = 0
  private var freeIds = new Array[Int](Smallest)
  private var numFreeIds = 0

  def numBytes: Long =
    8L * addresses.length + 4L * (nextIds.length + previousIds.length + freeIds.length)

  /** Ids are below it. */
  def end: Int = numIds

  def addressOf(id: Int): Long = addresses(id)

  /** Whether there is such an entry, at this address. Records of what has gone have any id. */
  def isAt(id: Int, address: Long): Boolean = id < numIds && addresses(id) == address

  def setAddress(id: Int, address: Long): Unit = addresses(id) = address

  /** All addresses, those of no entry among them. */
  def allAddresses: Array[Long] = Arrays.copyOf(addresses, numIds)

  /** The next in its chain, below 0 if there is none. An entry that has gone still leads on. */
  def next(id: Int): Int = nextIds(id)

  /** The one before in its chain, below 0 if it is the first. */
  def previous(id: Int): Int = previousIds(id)

  /** Puts an entry before the first of a chain, or begins one. */
  def putBefore(id: Int, first: Int): Unit = {
    previousIds(id) = -1
    nextIds(id) = first
    if (first >= 0) previousIds(first) = id
  }

  def takeFromChain(id: Int): Unit = {
    val (previous, next) = (previousIds(id), nextIds(id))
    if (next >= 0) previousIds(next) = previous
    if (previous >= 0) nextIds(previous) = next
  }

  def take(): Int =
    if (numFreeIds > 0) {
      numFreeIds -= 1
      freeIds(numFreeIds)
    } else {
      if (numIds == addresses.length) {
        addresses = Arrays.copyOf(addresses, 2 * numIds)
        if (hasChains) {
          nextIds = Arrays.copyOf(nextIds, 2 * numIds)
          previousIds = Arrays.copyOf(previousIds, 2 * numIds)
        }
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
    val newAddresses = new Array[Long](math.max(Smallest, 2 * numEntries))
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
    if (hasChains) {
      nextIds = renumbered(nextIds, newIds, newAddresses.length)
      previousIds = renumbered(previousIds, newIds, newAddresses.length)
    }
    addresses = newAddresses
    numIds = count
    freeIds = new Array[Int](Smallest)
    numFreeIds = 0
    newIds
  }

  private def renumbered(ids: Array[Int], newIds: Array[Int], length: Int): Array[Int] = {
    val result = new Array[Int](length)
    var id = 0
    while (id < numIds) {
      if (newIds(id) >= 0) result(newIds(id)) = if (ids(id) < 0) -1 else newIds(ids(id))
      id += 1
    }
    result
  }
}

private object EntryIds {
  private val Smallest = 16

  /** Of fewer ids those that are not needed are kept. */
  private val SmallestSparse = 1024
}
