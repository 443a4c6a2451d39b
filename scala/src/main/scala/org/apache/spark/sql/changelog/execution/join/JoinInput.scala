// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeReference, Expression, UnsafeProjection, UnsafeRow
}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.ChangeMetrics

/**
 * Reads the changes of a side, for each join key a limited number at a time.
 *
 * @param input
 *   the columns of the changes, including the row kind
 * @param atOnce
 *   the number of changed rows to hold; further rows wait for the next part. All changes of a row are read
 *   together if the input has the order [[JoinSideLayout.changeOrder]]
 */
private[join] final class JoinInput(part: MatchedSide, input: Seq[Attribute], atOnce: Int) {
  private val columnsOf: InternalRow => UnsafeRow =
    if (part.layout.columns.map(_.exprId) == input.map(_.exprId)) _.asInstanceOf[UnsafeRow]
    else {
      val columns = UnsafeProjection.create(part.layout.columns, input)
      columns(_)
    }
  private val kindOrdinal = RowKind.ordinal(part.layout.joined.kind, input)
  private var changes: Iterator[InternalRow] = Iterator.empty
  // the first change that waits for the next part
  private var waiting: UnsafeRow = _
  private var waitingRetracts = false

  /** Starts with the changes of the next join key. */
  def begin(changes: Iterator[InternalRow]): Unit = {
    this.changes = changes
    if (changes.hasNext) part.state.countKey()
  }

  /** Returns whether the join key has unread changes. */
  def hasMore: Boolean = waiting != null || changes.hasNext

  /** Reads the next part of the join key's changes. */
  def addSome(joinKey: UnsafeRow): Unit = {
    part.state.begin(joinKey)
    if (waiting != null) {
      part.state.add(waiting, waitingRetracts)
      waiting = null
    }
    while (waiting == null && changes.hasNext) {
      val change = changes.next()
      val row = columnsOf(change).copy()
      val retracts = RowKind.retracts(kindOf(change))
      if (part.state.numHeld >= atOnce && !part.state.holds(row)) {
        waiting = row
        waitingRetracts = retracts
      } else part.state.add(row, retracts)
    }
  }

  /**
   * Passes the next change of a join key without matches to `output`, if this side is preserved. Returns false
   * after the last change.
   */
  def pass(output: JoinOutput): Boolean = changes.hasNext && {
    val change = changes.next()
    if (part.paddingIfUnmatched != null) {
      val row = columnsOf(change)
      if (part.isLeft) output.pass(row, part.paddingIfUnmatched, kindOf(change))
      else output.pass(part.paddingIfUnmatched, row, kindOf(change))
    }
    true
  }

  private def kindOf(change: InternalRow): Byte = RowKind.at(change, kindOrdinal)
}

/**
 * Iterates over the changes of each join key, computing them on demand.
 *
 * @param kindOrdinal
 *   the ordinal of the row kind in emitted rows
 */
private[join] abstract class KeyedChanges(kindOrdinal: Int, metrics: ChangeMetrics)
    extends Iterator[InternalRow] {
  private var row: UnsafeRow = _

  /** The buffer with rows to emit. */
  protected def buffer: JoinOutput

  /** Does the next part of the work for the current join key. Returns false if no work is left. */
  protected def step(): Boolean

  /** Moves to the next join key. Returns false after the last join key. */
  protected def nextKey(): Boolean

  override def hasNext: Boolean = {
    var isDone = false
    while (row == null && !isDone) {
      row = buffer.poll()
      if (row == null && !step()) {
        // a held retraction cannot pair with a row of the next join key
        row = buffer.pollHeld()
        if (row == null) isDone = !nextKey()
      }
    }
    row != null
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    val result = row
    row = null
    metrics.emit(result.getByte(kindOrdinal))
    result
  }
}

private[join] object KeyedChanges {

  /** Returns the attributes of a key that may be NULL, or contain NULLs, if the key of any side may. */
  def commonKey(key: Seq[Expression]): Seq[Attribute] =
    key.map(part => AttributeReference("key", part.dataType.asNullable)())
}

/**
 * The change of a row of a side: a replacement of the row, or a different number of copies.
 *
 * @param before
 *   the row before the batch; null for a new row
 * @param after
 *   the row after the batch, the same object as `before` if only copies changed; null for a removed row
 */
private[join] final class RowChange(
    val before: UnsafeRow,
    val after: UnsafeRow,
    val copiesBefore: Long,
    val copiesAfter: Long) {

  /** The number of rows of the other side that `before` matched before the batch. */
  var matchesBefore: Long = 0

  /** The number of rows of the other side that `after` matches after the batch. */
  var matchesAfter: Long = 0

  def isSameRow: Boolean = before eq after
}

private[join] object RowChange {

  /** Returns the change of a row with at most one copy. */
  def ofOne(before: UnsafeRow, after: UnsafeRow): RowChange =
    new RowChange(before, after, if (before == null) 0 else 1, if (after == null) 0 else 1)
}
