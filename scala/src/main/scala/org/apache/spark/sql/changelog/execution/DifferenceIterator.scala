// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

import org.apache.spark.sql.changelog.RowKind

/**
 * Emits, for one key after the other, the difference between the key's old and new row.
 *
 * {{{
 *   old   new        emitted
 *   -     n          +I n
 *   o     -          -D o
 *   o     o          nothing
 *   o     n          -U o, +U n       (only +U n if the consumer does not ask for -U)
 * }}}
 *
 * The rows are emitted as they are, with their kind set in place.
 *
 * @param kindOrdinal
 *   where the row kind stands; `+I` in the rows handed in
 */
abstract class DifferenceIterator(
    kindOrdinal: Int,
    sendsUpdateBefore: Boolean,
    metrics: ChangeMetrics)
    extends Iterator[InternalRow] {

  private var first: UnsafeRow = _
  private var second: UnsafeRow = _

  /** Goes to the next key; false if there is none. */
  protected def nextKey(): Boolean

  /** The key's row before this batch, or null. */
  protected def before: UnsafeRow

  /** The key's row after this batch, or null. */
  protected def after: UnsafeRow

  override def hasNext: Boolean = {
    while (first == null && nextKey()) compare(before, after)
    first != null
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    val row = first
    first = second
    second = null
    metrics.emit(row.getByte(kindOrdinal))
    row
  }

  private def compare(before: UnsafeRow, after: UnsafeRow): Unit =
    if (before == null) {
      first = after
    } else if (after == null) {
      before.setByte(kindOrdinal, RowKind.Delete)
      first = before
    } else if (before != after) {
      after.setByte(kindOrdinal, RowKind.UpdateAfter)
      if (sendsUpdateBefore) {
        before.setByte(kindOrdinal, RowKind.UpdateBefore)
        first = before
        second = after
      } else first = after
    }
}
