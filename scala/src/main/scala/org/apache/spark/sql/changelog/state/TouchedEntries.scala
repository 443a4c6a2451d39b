// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.util.BitSet

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
