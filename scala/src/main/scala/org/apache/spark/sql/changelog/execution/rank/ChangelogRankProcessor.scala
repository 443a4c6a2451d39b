// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import java.util.{ArrayList, Comparator, HashMap, LinkedHashMap}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

import org.apache.spark.sql.changelog.execution.{CountedTail, UnmatchedRetractions}

/**
 * Applies a batch's changes to one partition's best rows after the other.
 *
 * A partition is [[begin begun]] with its head as it is stored, gets its changes by [[add]], and is
 * [[end ended]], which leaves the rows that are shown before and after the batch.
 */
private[rank] abstract class ChangelogRankProcessor(
    head: RankHead,
    tail: CountedTail[UnsafeRow]) {

  /** The rows shown before the batch. */
  var before: ArrayList[RankedRow] = _

  /** The rows shown after the batch. */
  var after: ArrayList[RankedRow] = _

  def begin(): Unit = before = head.shown()

  /** Takes a change of the partition; `row` may be overwritten afterwards. */
  def add(row: UnsafeRow, retracts: Boolean): Unit

  def end(): Unit = after = head.complete(tail)
}

/** Rows that only come. */
private[rank] final class AppendFastProcessor(head: RankHead, tail: CountedTail[UnsafeRow])
    extends ChangelogRankProcessor(head, tail) {

  override def add(row: UnsafeRow, retracts: Boolean): Unit = head.offer(row, tail)
}

/**
 * Rows that replace the one with their key, and are better then. Old rows are left out or not; the
 * stored one is what is replaced.
 */
private[rank] final class UpdateFastProcessor(
    head: RankHead,
    tail: CountedTail[UnsafeRow],
    keyOf: UnsafeRow => UnsafeRow)
    extends ChangelogRankProcessor(head, tail) {
  private val known = new HashMap[UnsafeRow, UnsafeRow]
  private val changes = new LinkedHashMap[UnsafeRow, UnsafeRow]

  /** Several changes of a key come in the order in which they were made. */
  override def add(row: UnsafeRow, retracts: Boolean): Unit =
    if (!retracts) changes.put(keyOf(row).copy(), row.copy())

  override def end(): Unit = {
    known.clear()
    var index = 0
    while (index < head.size) {
      known.put(keyOf(head.entry(index)).copy(), head.entry(index))
      index += 1
    }
    changes.forEach { (key, row) =>
      val replaced = known.get(key)
      if (replaced != null) head.withdraw(replaced)
      head.offer(row, tail)
    }
    changes.clear()
    super.end()
  }
}

/**
 * Rows that come and go, in order: equal rows stand together and cancel out.
 *
 * @param order
 *   the order rows come in; it may find rows equal that are not the same
 * @param describe
 *   what an error calls a row
 */
private[rank] final class RetractProcessor(
    head: RankHead,
    tail: CountedTail[UnsafeRow],
    order: Comparator[UnsafeRow],
    unmatched: UnmatchedRetractions,
    describe: UnsafeRow => String)
    extends ChangelogRankProcessor(head, tail) {
  private val equals = new LinkedHashMap[UnsafeRow, Array[Long]]
  private var first: UnsafeRow = _

  override def add(row: UnsafeRow, retracts: Boolean): Unit = {
    if (first != null && order.compare(first, row) != 0) apply()
    val sign = if (retracts) -1L else 1L
    val count = equals.get(row)
    if (count != null) count(0) += sign
    else {
      val kept = row.copy()
      if (first == null) first = kept
      equals.put(kept, Array(sign))
    }
  }

  override def end(): Unit = {
    apply()
    super.end()
  }

  private def apply(): Unit = {
    equals.forEach { (row, count) =>
      val delta = count(0)
      if (delta != 0) {
        val before = head.add(row, delta, tail)
        unmatched.note(before, before + delta, describe(row))
      }
    }
    equals.clear()
    first = null
  }
}
