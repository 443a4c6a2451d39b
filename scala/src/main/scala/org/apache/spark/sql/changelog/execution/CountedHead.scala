// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.util.{ArrayList, Collections, Comparator, PriorityQueue}

/** The tail: the entries outside a head, each with a signed count. */
trait CountedTail[T] {

  /** Returns the count of `entry`, 0 if the entry is not stored. */
  def count(entry: T): Long

  /** Stores `entry` with a count. A count of 0 removes the entry. */
  def update(entry: T, count: Long): Unit

  /** Visits all stored entries. */
  def foreach(visit: (T, Long) => Unit): Unit
}

/**
 * Keeps the best entries of a key at hand while entries are inserted and removed.
 *
 * The best entries, with their counts, are the *head*. The head is small and lives in one record. All worse
 * entries are the *tail*, one record each. Most keys have no tail. A head with too few entries is refilled by
 * one scan of the tail.
 *
 * Counts are signed. An entry with a negative count is stored, because its insert may arrive later, but is not
 * visible.
 *
 * @param order
 *   compares entries, the better entry first; returns 0 only for identical entries
 */
abstract class CountedHead[T](order: Comparator[T]) {
  private val entries = new ArrayList[T]
  private val counts = new ArrayList[java.lang.Long]
  private var tailSize = 0L
  private var changed = false

  /** The number of entries to refill the head with. The head spills to the tail at twice this number. */
  protected def capacity: Int

  /** The number of entries in the tail. */
  def numTailEntries: Long = tailSize

  /** The number of entries in the head. */
  def size: Int = entries.size

  /** Whether the key's record differs from the record in the store. */
  def isChanged: Boolean = changed

  def entry(index: Int): T = entries.get(index)

  def count(index: Int): Long = counts.get(index)

  /** Starts with an empty head for the next key, which has `numTailEntries` entries in the tail. */
  def reset(numTailEntries: Long): Unit = {
    entries.clear()
    counts.clear()
    tailSize = numTailEntries
    changed = false
  }

  /** Adds an entry at the end of the head, as read from the key's record. */
  def append(entry: T, count: Long): Unit = {
    entries.add(entry)
    counts.add(count)
  }

  /** Adds `delta` to the count of `entry` and returns the count before. */
  def add(entry: T, delta: Long, tail: CountedTail[T]): Long = {
    val found = Collections.binarySearch(entries, entry, order)
    if (found >= 0) {
      val before: Long = counts.get(found)
      if (before + delta == 0) removeAt(found) else counts.set(found, before + delta)
      changed = true
      before
    } else {
      val position = -found - 1
      if (tailSize == 0 || position < entries.size) {
        if (delta != 0) {
          entries.add(position, entry)
          counts.add(position, delta)
          changed = true
          if (entries.size > 2 * capacity) spill(tail)
        }
        0L
      } else addToTail(entry, delta, tail)
    }
  }

  /** Whether the head holds `entry`. */
  def contains(entry: T): Boolean = Collections.binarySearch(entries, entry, order) >= 0

  /** The count of `entry`, which the head holds. */
  def countOf(entry: T): Long = counts.get(Collections.binarySearch(entries, entry, order))

  /** Returns whether the tail is the place of `entry`. */
  def isAfterHead(entry: T): Boolean =
    tailSize > 0 && (entries.isEmpty || order.compare(entry, entries.get(entries.size - 1)) > 0)

  /** Updates the size of the tail after the count of one of its entries changed. */
  def changeTail(before: Long, after: Long): Unit = {
    if (before == 0 && after != 0) tailSize += 1
    if (before != 0 && after == 0) tailSize -= 1
    // the size of the tail is part of the record
    changed ||= before == 0 || after == 0
  }

  /** Removes all copies of `entry` from the head. */
  protected def discard(entry: T): Unit = {
    val found = Collections.binarySearch(entries, entry, order)
    if (found >= 0) removeAt(found)
  }

  /** Keeps only the first `size` entries of the head, and sets the count of the last entry to `lastCount`. */
  protected def truncate(size: Int, lastCount: Long): Unit = {
    while (entries.size > size) removeAt(entries.size - 1)
    if (size > 0 && count(size - 1) != lastCount) {
      counts.set(size - 1, lastCount)
      changed = true
    }
  }

  private def removeAt(index: Int): Unit = {
    entries.remove(index)
    counts.remove(index)
    changed = true
  }

  /** Moves the best entries of the tail into the head. */
  protected def refill(tail: CountedTail[T]): Unit = {
    val worstFirst = new PriorityQueue[(T, Long)](
      capacity + 1,
      (left: (T, Long), right: (T, Long)) => order.compare(right._1, left._1))
    var numVisited = 0L
    tail.foreach { (entry, count) =>
      numVisited += 1
      worstFirst.add((entry, count))
      if (worstFirst.size > capacity) worstFirst.poll()
    }
    val taken = new ArrayList[(T, Long)](worstFirst)
    taken.sort((left, right) => order.compare(left._1, right._1))
    taken.forEach { case (entry, count) =>
      append(entry, count)
      tail.update(entry, 0)
    }
    // entries of a tail may have expired
    tailSize = numVisited - taken.size
    changed = true
  }

  /** Removes all entries. */
  def clear(tail: CountedTail[T]): Unit = {
    if (tailSize > 0) {
      val left = new ArrayList[T]
      tail.foreach((entry, _) => left.add(entry))
      left.forEach(entry => tail.update(entry, 0))
    }
    reset(0)
  }

  private def addToTail(entry: T, delta: Long, tail: CountedTail[T]): Long = {
    val before = tail.count(entry)
    val after = before + delta
    tail.update(entry, after)
    changeTail(before, after)
    before
  }

  /** Moves entries from a full head to the tail. */
  protected def spill(tail: CountedTail[T]): Unit = {
    changed = true
    while (entries.size > capacity) {
      val last = entries.size - 1
      tail.update(entries.remove(last), counts.remove(last))
      tailSize += 1
    }
  }
}
