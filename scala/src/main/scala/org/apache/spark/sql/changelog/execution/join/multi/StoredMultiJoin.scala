// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.multi

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.join.{JoinLayout, JoinSideState, StoredJoin}

/**
 * Joins all rows that a join of several inputs keeps, one join key after the other.
 *
 * @param conditions
 *   for each input, what its row must meet together with those of the inputs before it, or null
 * @param columns
 *   the columns of the result, without its row kind
 */
private[multi] final class StoredMultiJoin(
    layout: JoinLayout,
    store: StateStore,
    states: Seq[JoinSideState],
    conditions: Array[BasePredicate],
    columns: Seq[Attribute]) {
  private val rowOf = UnsafeProjection.create(columns :+ Literal(RowKind.Insert), columns)

  /** The rows of the result, each as an insert. */
  def rows: Iterator[InternalRow] = StoredJoin.joinKeys(layout, store).flatMap { joinKey =>
    val inputs = states.map { state =>
      state.begin(joinKey)
      state.load()
      StoredJoin.keptOf(state)
    }
    if (inputs.exists(_.isEmpty)) Iterator.empty
    else {
      combined(inputs).flatMap { case (row, copies) =>
        Iterator.range(0, copies.toInt).map(_ => rowOf(row))
      }
    }
  }

  /** Combinations of a row of each input that meet the conditions, each so many times. */
  private def combined(inputs: Seq[Seq[StoredJoin.Kept]]): Iterator[(InternalRow, Long)] = {
    val first = inputs.head.iterator.collect {
      case kept if meets(0, kept.row) => (kept.row: InternalRow, kept.copies)
    }
    inputs.zipWithIndex.tail.foldLeft(first) { case (before, (rows, index)) =>
      before.flatMap { case (left, copies) =>
        rows.iterator
          .map(kept => (new JoinedRow(left, kept.row): InternalRow, copies * kept.copies))
          .filter { case (row, _) => meets(index, row) }
      }
    }
  }

  private def meets(input: Int, row: InternalRow): Boolean =
    conditions(input) == null || conditions(input).eval(row)
}
