// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import java.util.{ArrayDeque, ArrayList, Comparator, LinkedHashMap}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** What is shown before and after; one of them may be null. */
private[rank] final case class RankedChange(before: RankedRow, after: RankedRow)

/** Tells which of a partition's shown rows come, go and replace each other. */
private[rank] trait RankDifference {

  /** The changes that lead from the rows shown before to those shown after. */
  def apply(before: ArrayList[RankedRow], after: ArrayList[RankedRow]): ArrayList[RankedChange]
}

/** A row replaces the one that had its rank. */
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
 * A row replaces the one that had its key.
 *
 * @param order
 *   the total order of rows
 * @param isNumbered
 *   whether a row with another rank is another row
 * @param keyOf
 *   the key of a row; without one rows only come and go
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

  /** Walks both lists in their common order. */
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
