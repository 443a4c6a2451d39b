// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeProjection, UnsafeRow}

import org.apache.spark.sql.changelog.RowKind

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
    if (part.besideUnmatched != null) {
      val row = columnsOf(change)
      if (part.isLeft) output.pass(row, part.besideUnmatched, kindOf(change))
      else output.pass(part.besideUnmatched, row, kindOf(change))
    }
    true
  }

  private def kindOf(change: InternalRow): Byte = RowKind.at(change, kindOrdinal)
}
