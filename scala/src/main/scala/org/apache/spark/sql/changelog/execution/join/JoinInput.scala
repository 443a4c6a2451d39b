// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}

import org.apache.spark.sql.changelog.RowKind

/**
 * Takes in the changes of one side.
 *
 * @param input
 *   the columns they come with, the row kind among them
 */
private[join] final class JoinInput(part: JoinPart, input: Seq[Attribute]) {
  private val columnsOf = GenerateUnsafeProjection.generate(part.layout.columns, input)
  private val kindOrdinal =
    part.layout.kind.map(kind => input.indexWhere(_.exprId == kind.exprId)).getOrElse(-1)
  private var changes: Iterator[InternalRow] = Iterator.empty

  /** Goes to the changes of another join key. */
  def begin(changes: Iterator[InternalRow]): Unit = this.changes = changes

  /** Takes all changes of a join key in. */
  def addAll(joinKey: UnsafeRow): Unit = {
    part.state.begin(joinKey)
    while (changes.hasNext) {
      val change = changes.next()
      part.state.add(columnsOf(change).copy(), RowKind.retracts(kindOf(change)))
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

  private def kindOf(change: InternalRow): Byte =
    if (kindOrdinal < 0) RowKind.Insert else change.getByte(kindOrdinal)
}
