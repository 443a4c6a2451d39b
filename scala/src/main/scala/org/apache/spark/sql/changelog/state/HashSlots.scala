// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

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
