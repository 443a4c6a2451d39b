// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * What a batch does to one row of a side: another row comes in its place, or the number of its
 * copies changes.
 *
 * @param before
 *   the row before the batch; null if there was none
 * @param after
 *   the row after the batch, the same object as `before` if only copies changed; null if gone
 */
private[join] final class RowChange(
    val before: UnsafeRow,
    val after: UnsafeRow,
    val copiesBefore: Long,
    val copiesAfter: Long) {

  /** How many rows of the other side `before` matched before the batch. */
  var matchesBefore: Long = 0

  /** How many rows of the other side `after` matches after the batch. */
  var matchesAfter: Long = 0

  def isSameRow: Boolean = before eq after
}

private[join] object RowChange {

  /** Of a row of which there is one at most. */
  def ofOne(before: UnsafeRow, after: UnsafeRow): RowChange =
    new RowChange(before, after, if (before == null) 0 else 1, if (after == null) 0 else 1)
}
