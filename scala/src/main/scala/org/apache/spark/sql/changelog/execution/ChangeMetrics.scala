// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.SQLMetric

import org.apache.spark.sql.changelog.RowKind

/**
 * Counts what an operator emits and what it does to its state. Changes are counted so that the number
 * of each kind is known, with no more to be done for a change than is needed for that.
 *
 * @param emitted
 *   changes of all kinds
 * @param retracted
 *   those of them that take a row back
 * @param postimages
 *   those of them that are the new row of an update
 * @param deletes
 *   those of them that take a row back for good
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

  /** Counts a change that is emitted. */
  def emit(kind: Byte): Unit = {
    emitted += 1
    if (RowKind.retracts(kind)) {
      retracted += 1
      if (kind == RowKind.Delete) deletes += 1
    } else if (kind == RowKind.UpdateAfter) postimages += 1
  }
}

/** Takes note of retractions of rows that were never given. */
trait UnmatchedRetractions extends Serializable {
  def apply(count: Long, key: => String): Unit

  /** Takes note of those by which a row is taken back more often than it was given, if any. */
  final def note(before: Long, after: Long, key: => String): Unit = {
    val missing = UnmatchedRetractions.count(before, after)
    if (missing > 0) apply(missing, key)
  }
}

object UnmatchedRetractions {

  /**
   * How many retractions of a batch find no row, if a row was there `before` times and is there
   * `after` times: below 0 if it is taken back more often than it was given. Below 0 itself if rows
   * have come for such retractions.
   */
  def count(before: Long, after: Long): Long = math.max(0L, -after) - math.max(0L, -before)
}

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
