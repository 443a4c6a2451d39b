// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeReference,
  Expression,
  UnsafeProjection,
  UnsafeRow
}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.ChangeMetrics

/**
 * Takes in the changes of one side, of each join key so many at a time.
 *
 * @param input
 *   the columns they come with, the row kind among them
 * @param atOnce
 *   how many rows that change are held; those beyond wait for the next time. All changes of one row
 *   come together, if they come in the order [[JoinSideLayout.changeOrder]] asks for
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
  // the first change that has to wait
  private var waiting: UnsafeRow = _
  private var waitingRetracts = false

  /** Goes to the changes of another join key. */
  def begin(changes: Iterator[InternalRow]): Unit = {
    this.changes = changes
    if (changes.hasNext) part.state.countKey()
  }

  /** Whether changes of the join key are left. */
  def hasMore: Boolean = waiting != null || changes.hasNext

  /** Takes changes of the join key in, those that waited first. */
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
   * Lets the next change of a join key that matches nothing come out by itself, if it may; false if
   * there is none.
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
 * What one join key after the other has to say, as it is asked for.
 *
 * @param kindOrdinal
 *   where the row kind stands in what comes out
 */
private[join] abstract class KeyedChanges(kindOrdinal: Int, metrics: ChangeMetrics)
    extends Iterator[InternalRow] {
  private var row: UnsafeRow = _

  /** Where rows wait that are to come out. */
  protected def buffer: JoinOutput

  /** Does the next part of the work for the join key at hand; false if there is none. */
  protected def step(): Boolean

  /** Goes to another join key; false if there is none. */
  protected def nextKey(): Boolean

  override def hasNext: Boolean = {
    var isDone = false
    while (row == null && !isDone) {
      row = buffer.poll()
      if (row == null && !step()) {
        // the next join key has nothing to do with a row held back for this one
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

  /** A key that can be NULL, or have NULLs within, where only another side's can. */
  def commonKey(key: Seq[Expression]): Seq[Attribute] =
    key.map(part => AttributeReference("key", part.dataType.asNullable)())
}

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

  /** For a row that exists at most once. */
  def ofOne(before: UnsafeRow, after: UnsafeRow): RowChange =
    new RowChange(before, after, if (before == null) 0 else 1, if (after == null) 0 else 1)
}
