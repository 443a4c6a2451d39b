// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.SQLMetric

import org.apache.spark.sql.changelog.RowKind

/**
 * Counts the changes that an operator emits, by row kind, and the records of its state that it writes or
 * removes. The number of each row kind follows from these counters, with few additions per change.
 *
 * @param emitted
 *   changes of all row kinds
 * @param retracted
 *   retractions among the emitted changes
 * @param postimages
 *   after images (`+U`) among the emitted changes
 * @param deletes
 *   deletes (`-D`) among the emitted changes
 * @param updated
 *   state records written
 * @param removed
 *   state records removed
 */
final case class ChangeMetrics(
    emitted: SQLMetric,
    retracted: SQLMetric,
    postimages: SQLMetric,
    deletes: SQLMetric,
    updated: SQLMetric,
    removed: SQLMetric) {

  /** Counts an emitted change. */
  def emit(kind: Byte): Unit = {
    emitted += 1
    if (RowKind.retracts(kind)) {
      retracted += 1
      if (kind == RowKind.Delete) deletes += 1
    } else if (kind == RowKind.UpdateAfter) postimages += 1
  }
}

/** Records unmatched retractions: retractions of rows never inserted. */
trait UnmatchedRetractions extends Serializable {
  def apply(count: Long, key: => String): Unit

  /** Records the unmatched retractions of a batch that changes a row's count from `before` to `after`. */
  final def note(before: Long, after: Long, key: => String): Unit = {
    val missing = UnmatchedRetractions.count(before, after)
    if (missing > 0) apply(missing, key)
  }
}

object UnmatchedRetractions {

  /**
   * Returns the number of unmatched retractions in a batch, for a row with the count `before` before the batch
   * and `after` after it. A count is below 0 if the row was retracted more often than inserted. The result is
   * negative if inserts have arrived for earlier unmatched retractions.
   */
  def count(before: Long, after: Long): Long = math.max(0L, -after) - math.max(0L, -before)
}

/**
 * Emits the difference between the old and the new row of each key.
 *
 * {{{
 *   old   new        emitted
 *
 *   -     n          +I n
 *   o     -          -D o
 *   o     o          nothing
 *   o     n          -U o, +U n       (only +U n if the consumer does not ask for -U)
 * }}}
 *
 * The iterator returns the rows themselves and sets the row kind in place.
 *
 * @param kindOrdinal
 *   the ordinal of the row kind; the rows passed in have `+I`
 */
abstract class DifferenceIterator(
    kindOrdinal: Int,
    sendsUpdateBefore: Boolean,
    metrics: ChangeMetrics)
    extends Iterator[InternalRow] {

  private var first: UnsafeRow = _
  private var second: UnsafeRow = _

  /** Moves to the next key. Returns false after the last key. */
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
