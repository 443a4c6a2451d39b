// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.util.{ArrayList, Collections, Comparator, PriorityQueue}

/** The entries that are not in a head, each with a signed count. */
trait CountedTail[T] {

  /** The count of `entry`, 0 if it is not kept. */
  def count(entry: T): Long

  /** Keeps `entry` with a count; a count of 0 forgets it. */
  def update(entry: T, count: Long): Unit

  /** Visits all entries kept. */
  def foreach(visit: (T, Long) => Unit): Unit
}

/**
 * The best few of a key's entries while entries come and go.
 *
 * The best entries, with their counts, are the *head*; it is small and lives in one record. All
 * others are the *tail*, one record each, all of them worse than every entry of the head. Most keys
 * have no tail. A head that has lost too many is refilled by one scan of the tail.
 *
 * Counts are signed: an entry whose count is not positive is kept, since its insert may still
 * come, but nobody sees it.
 *
 * @param order
 *   compares entries, the better one first; equal only if they are the same
 */
abstract class CountedHead[T](order: Comparator[T]) {
  private val entries = new ArrayList[T]
  private val counts = new ArrayList[java.lang.Long]
  private var tailSize = 0L
  private var changed = false

  /** How many entries the head is refilled with; it spills at twice as many. */
  protected def capacity: Int

  /** How many entries the tail holds. */
  def numTailEntries: Long = tailSize

  /** How many entries the head holds. */
  def size: Int = entries.size

  /** Whether the record of the key is no longer what was read. */
  def isChanged: Boolean = changed

  def entry(index: Int): T = entries.get(index)

  def count(index: Int): Long = counts.get(index)

  /** Starts over with the head and the size of the tail of another key. */
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

  /** Whether `entry`, if it is kept at all, is in the tail. */
  def isBeyond(entry: T): Boolean =
    tailSize > 0 && (entries.isEmpty || order.compare(entry, entries.get(entries.size - 1)) > 0)

  /** Takes note that the count of an entry of the tail has changed. */
  def changeTail(before: Long, after: Long): Unit = {
    if (before == 0 && after != 0) tailSize += 1
    if (before != 0 && after == 0) tailSize -= 1
    // the size of the tail is part of the record
    changed ||= before == 0 || after == 0
  }

  /** Takes all copies of `entry` out of the head, if it is there. */
  protected def discard(entry: T): Unit = {
    val found = Collections.binarySearch(entries, entry, order)
    if (found >= 0) removeAt(found)
  }

  /** Keeps only the first `size` entries of the head, the last of them with this count. */
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

  /** Brings up the best entries of the tail. */
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
    // entries of a tail may have been forgotten for their age
    tailSize = numVisited - taken.size
    changed = true
  }

  /** Forgets all entries. */
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

  /** Makes room in a head that has grown too large. */
  protected def spill(tail: CountedTail[T]): Unit = {
    changed = true
    while (entries.size > capacity) {
      val last = entries.size - 1
      tail.update(entries.remove(last), counts.remove(last))
      tailSize += 1
    }
  }
}
