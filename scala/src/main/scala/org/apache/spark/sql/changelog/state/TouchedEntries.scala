// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import java.util.{Arrays, BitSet}

/** Which entries a batch has touched, in order, each with the address of its record before. */
private[state] final class TouchedEntries {
  import TouchedEntries._

  private var isTouched = new BitSet
  private var ids = new Array[Int](16)
  private var addresses = new Array[Long](16)
  private var count = 0

  def size: Int = count

  def numBytes: Long = 12L * ids.length + isTouched.size / 8

  def idAt(index: Int): Int = ids(index)

  /** 0 if there was no such entry. */
  def addressBeforeAt(index: Int): Long = addresses(index)

  /** Takes note of an entry, if it is the first time. */
  def add(id: Int, addressBefore: Long): Unit =
    if (!isTouched.get(id)) {
      isTouched.set(id)
      if (count == ids.length) {
        ids = Arrays.copyOf(ids, 2 * count)
        addresses = Arrays.copyOf(addresses, 2 * count)
      }
      ids(count) = id
      addresses(count) = addressBefore
      count += 1
    }

  def clear(): Unit = {
    if (ids.length > Smallest && count < ids.length / 4) {
      // a batch before was much larger
      isTouched = new BitSet
      ids = new Array[Int](math.max(Smallest, 2 * count))
      addresses = new Array[Long](ids.length)
    } else {
      var index = 0
      while (index < count) {
        isTouched.clear(ids(index))
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
