// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.util.Comparator

import org.apache.spark.sql.changelog.execution.{CountedHead, CountedTail}

/**
 * The counted values of a group, shared by several extrema, such as `min(x)` and `max(x)`.
 *
 * Each extremum has a head. A value in no head is in `table`, once for all extrema. The tail of a head thus
 * consists of the table and the other heads.
 *
 * @param heads
 *   the best values in the order of each extremum
 * @param table
 *   the values in no head
 */
final class ExtremumValues(heads: Array[ExtremumHead], table: CountedTail[Any]) {
  private val tails = heads.map(new Tail(_))

  // the value being added; its place is known only after all heads have seen the value
  private var adding: Any = _
  private var countBefore = 0L

  /** Adds `delta` to the count of `value`. */
  def add(value: Any, delta: Long): Unit =
    if (heads.forall(_.isAfterHead(value))) {
      val before = table.count(value)
      val after = before + delta
      if (after != before) {
        table.update(value, after)
        heads.foreach(_.changeTail(before, after))
      }
    } else addToHeads(value, delta)

  /** Refills heads until each contains its best value. */
  def complete(): Unit = foreachHead((head, tail) => head.complete(tail))

  /** Removes all values. */
  def clear(): Unit = foreachHead((head, tail) => head.clear(tail))

  private def addToHeads(value: Any, delta: Long): Unit = {
    adding = value
    // every head in whose range the value lies contains it
    countBefore = heads.find(_.contains(value)).map(_.countOf(value)).getOrElse(0L)
    val after = countBefore + delta
    foreachHead((head, tail) => head.add(value, delta, tail))
    adding = null
    if (after != 0 && !heads.exists(_.contains(value))) table.update(value, after)
  }

  private def foreachHead(visit: (ExtremumHead, CountedTail[Any]) => Unit): Unit = {
    var index = 0
    while (index < heads.length) {
      visit(heads(index), tails(index))
      index += 1
    }
  }

  /** The tail of `head`. */
  private final class Tail(head: ExtremumHead) extends CountedTail[Any] {
    override def count(value: Any): Long = countBefore

    override def update(value: Any, count: Long): Unit =
      if (!isAdding(value) && !others.exists(_.contains(value))) table.update(value, count)

    override def foreach(visit: (Any, Long) => Unit): Unit = {
      table.foreach(visit)
      others.indices.foreach { index =>
        val other = others(index)
        (0 until other.size).foreach { position =>
          val value = other.entry(position)
          val isSeen = head.contains(value) || others.take(index).exists(_.contains(value))
          if (!isSeen) visit(value, other.count(position))
        }
      }
    }

    private lazy val others = heads.filter(_ ne head)

    private def isAdding(value: Any): Boolean =
      value.asInstanceOf[AnyRef] eq adding.asInstanceOf[AnyRef]
  }
}

/**
 * The best values of a group for one extremum, while values are inserted and retracted.
 *
 * @param order
 *   compares values, the better value first
 * @param capacity
 *   the number of values to refill the head with
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

  /** Refills the head until [[best]] is the best value of head and tail. */
  def complete(tail: CountedTail[Any]): Unit =
    while (best == null && numTailEntries > 0) refill(tail)
}
