// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.util.Comparator

import org.apache.spark.sql.changelog.execution.{CountedHead, CountedTail}

/**
 * Finds the best of a group's values while values come and go.
 *
 * @param order
 *   compares values, the better one first
 * @param capacity
 *   how many values the head is refilled with
 */
final class ExtremumHead(order: Comparator[Any], override protected val capacity: Int)
    extends CountedHead[Any](order) {

  /** The best value with a positive count, or null. */
  def best: Any = {
    var index = 0
    while (index < size) {
      if (count(index) > 0) return entry(index)
      index += 1
    }
    null
  }

  /** Makes sure that [[best]] sees the best value of all, head and tail. */
  def complete(tail: CountedTail[Any]): Unit =
    while (best == null && numTailEntries > 0) refill(tail)
}
