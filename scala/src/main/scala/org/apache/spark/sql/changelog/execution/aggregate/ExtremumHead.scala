// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.util.{ArrayList, Comparator, PriorityQueue}

/** The values of a group that are not in its head, each with a signed count. */
trait CountedValues {

  /** The count of `value`, 0 if it is not kept. */
  def count(value: Any): Long

  /** Keeps `value` with a count; a count of 0 forgets it. */
  def update(value: Any, count: Long): Unit

  /** Visits all values kept. */
  def foreach(visit: (Any, Long) => Unit): Unit
}

/**
 * Finds the best of a group's values while values come and go.
 *
 * The best few values, with their counts, are the *head*; it is small and lives in the group's own
 * record. All others are the *tail*, one entry each, all of them worse than every value of the
 * head. Most groups have no tail. A head that runs empty is refilled by one scan of the tail.
 *
 * Counts are signed: a value whose count is not positive is kept, since its insert may still
 * come, but it is never the result.
 *
 * @param order
 *   compares values, the better one first
 * @param capacity
 *   how many values the head is refilled with; it spills at twice as many
 */
final class ExtremumHead(order: Comparator[Any], capacity: Int) {
  private val values = new ArrayList[Any]
  private val counts = new ArrayList[java.lang.Long]
  private var tailSize = 0L

  /** How many values the tail holds. */
  def numTailValues: Long = tailSize

  /** How many values the head holds. */
  def numHeadValues: Int = values.size

  def headValue(index: Int): Any = values.get(index)

  def headCount(index: Int): Long = counts.get(index)

  /** Starts over with the head and the size of the tail of another group. */
  def reset(numTailValues: Long): Unit = {
    values.clear()
    counts.clear()
    tailSize = numTailValues
  }

  /** Adds a value at the end of the head, as read from the group's record. */
  def append(value: Any, count: Long): Unit = {
    values.add(value)
    counts.add(count)
  }

  /** The best value with a positive count, or null. */
  def best: Any = {
    var index = 0
    while (index < values.size) {
      if (counts.get(index) > 0) return values.get(index)
      index += 1
    }
    null
  }

  /** Adds `delta` to the count of `value`. */
  def add(value: Any, delta: Long, tail: CountedValues): Unit = if (delta != 0) {
    val found = java.util.Collections.binarySearch(values, value, order)
    if (found >= 0) {
      val count = counts.get(found) + delta
      if (count == 0) {
        values.remove(found)
        counts.remove(found)
      } else counts.set(found, count)
    } else {
      val position = -found - 1
      if (tailSize == 0 || position < values.size) {
        values.add(position, value)
        counts.add(position, delta)
        if (values.size > 2 * capacity) spill(tail)
      } else addToTail(value, delta, tail)
    }
  }

  /** Makes sure that [[best]] sees the best value of all, head and tail. */
  def refill(tail: CountedValues): Unit = while (best == null && tailSize > 0) {
    val worstFirst = new PriorityQueue[(Any, Long)](
      capacity + 1,
      (left: (Any, Long), right: (Any, Long)) => order.compare(right._1, left._1))
    var numVisited = 0L
    tail.foreach { (value, count) =>
      numVisited += 1
      worstFirst.add((value, count))
      if (worstFirst.size > capacity) worstFirst.poll()
    }
    val taken = new ArrayList[(Any, Long)](worstFirst)
    taken.sort((left, right) => order.compare(left._1, right._1))
    taken.forEach { case (value, count) =>
      append(value, count)
      tail.update(value, 0)
    }
    // values of a tail may have been forgotten for their age
    tailSize = numVisited - taken.size
  }

  /** Forgets all values. */
  def clear(tail: CountedValues): Unit = {
    if (tailSize > 0) {
      val left = new ArrayList[Any]
      tail.foreach((value, _) => left.add(value))
      left.forEach(value => tail.update(value, 0))
    }
    reset(0)
  }

  private def addToTail(value: Any, delta: Long, tail: CountedValues): Unit = {
    val before = tail.count(value)
    val after = before + delta
    tail.update(value, after)
    if (before == 0) tailSize += 1
    if (after == 0) tailSize -= 1
  }

  private def spill(tail: CountedValues): Unit = {
    while (values.size > capacity) {
      val last = values.size - 1
      tail.update(values.remove(last), counts.remove(last))
      tailSize += 1
    }
  }
}
