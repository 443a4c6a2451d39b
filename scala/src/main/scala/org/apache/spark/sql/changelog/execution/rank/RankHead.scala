// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import java.util.{ArrayDeque, ArrayList, Comparator, LinkedHashMap}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering

import org.apache.spark.sql.changelog.execution.{CountedHead, CountedTail, RowOrder}
import org.apache.spark.sql.changelog.plans.RankFunction

/** A visible row with its rank. */
private[rank] final case class RankedRow(row: UnsafeRow, rank: Int)

/**
 * The best rows of a partition.
 *
 * @param order
 *   a total order of rows
 * @param ties
 *   the order of ranks; rows that compare as equal are ties
 * @param keepsOthers
 *   whether rows beyond the last rank go to the tail; if not, they are dropped
 */
private[rank] final class RankHead(
    function: RankFunction,
    start: Long,
    end: Long,
    order: Comparator[UnsafeRow],
    ties: Comparator[UnsafeRow],
    keepsOthers: Boolean)
    extends CountedHead[UnsafeRow](order) {

  // more rows than visible, so that few retractions cause a scan of the tail
  private val enough = math.min(end + math.max(end / 2, 8L), 1L << 20).toInt
  // the number of entries up to the last rank, and the number of copies needed of the last entry
  private var numNeeded = 0
  private var lastNeeded = 0L
  private var hasAllRanks = false
  // worse rows are beyond the last rank, whatever rows arrive
  private var worst: UnsafeRow = _

  override protected def capacity: Int = math.max(enough, numNeeded)

  /** Returns the head's rows within the bounds, best first. */
  def shown(): ArrayList[RankedRow] = {
    val result = new ArrayList[RankedRow]
    var position = 0L
    var rank = 0L
    var previous: UnsafeRow = null
    numNeeded = size
    hasAllRanks = false
    worst = null
    var index = 0
    while (index < numNeeded) {
      val copies = count(index)
      lastNeeded = copies
      if (copies > 0) {
        val row = entry(index)
        val isTie = previous != null && ties.compare(previous, row) == 0
        val next = function match {
          case RankFunction.RowNumber => position + 1
          case _ if isTie => rank
          case RankFunction.RankWithGaps => position + 1
          case RankFunction.DenseRank => rank + 1
        }
        if (next > end) {
          hasAllRanks = true
          numNeeded = index
          lastNeeded = if (index == 0) 0L else count(index - 1)
        } else {
          rank = next
          addCopies(row, rank, copies, result)
          position += copies
          previous = row
          if (function == RankFunction.RowNumber && position >= end) {
            hasAllRanks = true
            numNeeded = index + 1
            lastNeeded = copies - (position - end)
          }
        }
      }
      index += 1
    }
    val hasNoMore = function match {
      case RankFunction.DenseRank => rank >= end
      case _ => position >= end
    }
    if (hasNoMore) worst = previous
    result
  }

  private def addCopies(
      row: UnsafeRow,
      rank: Long,
      copies: Long,
      result: ArrayList[RankedRow]): Unit = {
    var copy = 0L
    while (copy < copies) {
      val rankOfCopy = if (function == RankFunction.RowNumber) rank + copy else rank
      if (rankOfCopy > end) return
      if (rankOfCopy >= start) result.add(RankedRow(row, rankOfCopy.toInt))
      copy += 1
    }
  }

  /** Refills the head as needed and returns the rows within the bounds. */
  def complete(tail: CountedTail[UnsafeRow]): ArrayList[RankedRow] = {
    var result = shown()
    while (!hasAllRanks && numTailEntries > 0) {
      refill(tail)
      result = shown()
    }
    if (!keepsOthers) truncate(numNeeded, lastNeeded)
    else if (size > 2 * capacity) super.spill(tail)
    result
  }

  /** Adds a row, unless the row is beyond the last rank and would be dropped. */
  def offer(row: UnsafeRow, tail: CountedTail[UnsafeRow]): Unit = {
    val isOut = worst != null &&
      (if (function == RankFunction.RowNumber) order else ties).compare(row, worst) > 0
    if (!isOut) add(row.copy(), 1, tail)
  }

  /** Removes a row, if present. */
  def withdraw(row: UnsafeRow): Unit = {
    discard(row)
    worst = null
  }

  override protected def spill(tail: CountedTail[UnsafeRow]): Unit =
    if (keepsOthers) super.spill(tail)
    else {
      shown()
      truncate(numNeeded, lastNeeded)
    }
}

private[rank] object RankHead {
  def apply(layout: RankLayout): RankHead = {
    val ranked: Comparator[InternalRow] =
      GenerateOrdering.generate(layout.ranking.order, layout.rowColumns)
    new RankHead(
      layout.ranking.function,
      layout.ranking.start,
      layout.ranking.end,
      RowOrder.total(GenerateOrdering.generate(layout.rowOrder, layout.rowColumns)),
      ranked.compare(_, _),
      layout.keepsOthers)
  }
}

/** The row before and the row after; either may be null. */
private[rank] final case class RankedChange(before: RankedRow, after: RankedRow)

/** Computes which of a partition's visible rows were inserted, removed or replaced. */
private[rank] trait RankDifference {

  /** Returns the changes from the visible rows before to the visible rows after. */
  def apply(before: ArrayList[RankedRow], after: ArrayList[RankedRow]): ArrayList[RankedChange]
}

/** Pairs an old and a new row of the same rank. */
private[rank] object DifferenceBySlot extends RankDifference {

  override def apply(
      before: ArrayList[RankedRow],
      after: ArrayList[RankedRow]): ArrayList[RankedChange] = {
    val result = new ArrayList[RankedChange]
    var slot = 0
    while (slot < math.max(before.size, after.size)) {
      val old = if (slot < before.size) before.get(slot) else null
      val now = if (slot < after.size) after.get(slot) else null
      if (old == null || now == null || old.row != now.row) result.add(RankedChange(old, now))
      slot += 1
    }
    result
  }
}

/**
 * Pairs an old and a new row of the same key.
 *
 * @param order
 *   the total order of rows
 * @param isNumbered
 *   whether a row with another rank is another row
 * @param keyOf
 *   returns the key of a row; without it, rows are only inserted and removed
 */
private[rank] final class DifferenceByRow(
    order: Comparator[UnsafeRow],
    isNumbered: Boolean,
    keyOf: Option[UnsafeRow => UnsafeRow])
    extends RankDifference {
  private val gone = new ArrayList[RankedRow]
  private val come = new ArrayList[RankedRow]

  override def apply(
      before: ArrayList[RankedRow],
      after: ArrayList[RankedRow]): ArrayList[RankedChange] = {
    gone.clear()
    come.clear()
    compare(before, after)
    val result = new ArrayList[RankedChange]
    keyOf match {
      case Some(key) if !gone.isEmpty && !come.isEmpty => pair(key, result)
      case _ =>
        gone.forEach(row => result.add(RankedChange(row, null)))
        come.forEach(row => result.add(RankedChange(null, row)))
    }
    result
  }

  /** Merges both lists, which are in the same order. */
  private def compare(before: ArrayList[RankedRow], after: ArrayList[RankedRow]): Unit = {
    var (i, j) = (0, 0)
    while (i < before.size || j < after.size) {
      val compared =
        if (i == before.size) 1
        else if (j == after.size) -1
        else order.compare(before.get(i).row, after.get(j).row)
      if (compared == 0 && isNumbered && before.get(i).rank != after.get(j).rank) {
        gone.add(before.get(i))
        come.add(after.get(j))
      } else if (compared < 0) gone.add(before.get(i))
      else if (compared > 0) come.add(after.get(j))
      if (compared <= 0) i += 1
      if (compared >= 0) j += 1
    }
  }

  private def pair(key: UnsafeRow => UnsafeRow, result: ArrayList[RankedChange]): Unit = {
    val byKey = new LinkedHashMap[UnsafeRow, ArrayDeque[RankedRow]]
    gone.forEach { row =>
      byKey.computeIfAbsent(key(row.row).copy(), _ => new ArrayDeque[RankedRow](1)).add(row)
    }
    val inserted = new ArrayList[RankedRow]
    come.forEach { row =>
      val ofKey = byKey.get(key(row.row))
      if (ofKey == null || ofKey.isEmpty) inserted.add(row)
      else result.add(RankedChange(ofKey.poll(), row))
    }
    byKey.values.forEach(_.forEach(row => result.add(RankedChange(row, null))))
    inserted.forEach(row => result.add(RankedChange(null, row)))
  }
}
