// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.DistinctRows
import org.apache.spark.sql.changelog.plans.SideForm

/**
 * Joins all stored rows of a join, for each join key.
 *
 * @param emitsPairs
 *   whether matching rows are emitted as pairs
 * @param condition
 *   the join condition in addition to equal join keys
 * @param columns
 *   the columns of the result, without its row kind
 */
private[join] final class StoredJoin(
    layout: JoinLayout,
    store: StateStore,
    left: MatchedSide,
    right: MatchedSide,
    emitsPairs: Boolean,
    condition: Option[BasePredicate],
    columns: Seq[Attribute]) {
  import StoredJoin._

  private val joined = new JoinedRow
  private val output = new JoinedRow
  private val rowOf = UnsafeProjection.create(columns :+ Literal(RowKind.Insert), columns)

  /** The rows of the result, as inserts. */
  def rows: Iterator[InternalRow] = joinKeys(layout, store).flatMap(of)

  private def of(joinKey: UnsafeRow): Iterator[InternalRow] = {
    Seq(left, right).foreach { side =>
      side.state.begin(joinKey)
      side.state.load()
    }
    val isCounted = right.layout.form == SideForm.KeyCount
    val rightRows = if (isCounted) Nil else rowsIn(right.state)
    val leftRows = rowsIn(left.state)
    leftRows.iterator.flatMap { kept =>
      val matched = rightRows.filter(other => matches(kept.row, other.row))
      matched.foreach(_.matches += kept.copies)
      kept.matches = if (isCounted) right.state.totalBefore else matched.map(_.copies).sum
      val pairs = if (emitsPairs) matched.iterator else Iterator.empty
      pairs.flatMap(other => copies(kept.row, other.row, kept.copies * other.copies)) ++ {
        val padding = left.padding(kept.copies, kept.matches)
        if (padding == null) Iterator.empty else copies(kept.row, padding, kept.copies)
      }
    } ++ rightRows.iterator.flatMap { other =>
      val padding = right.padding(other.copies, other.matches)
      if (padding == null) Iterator.empty else copies(padding, other.row, other.copies)
    }
  }

  private def matches(leftRow: InternalRow, rightRow: InternalRow): Boolean =
    condition.forall(_.eval(joined(leftRow, rightRow)))

  private def copies(left: InternalRow, right: InternalRow, count: Long): Iterator[InternalRow] =
    Iterator.range(0, count.toInt).map(_ => rowOf(output(left, right)))
}

private[join] object StoredJoin {

  /** A stored row with its number of copies, and its number of matches. */
  final class StoredCopies(val row: UnsafeRow, val copies: Long) {
    var matches = 0L
  }

  /** Returns the distinct join keys in the state. The entries of a join key are not adjacent. */
  def joinKeys(layout: JoinLayout, store: StateStore): Iterator[UnsafeRow] = {
    val types = layout.keySchema.map(_.dataType)
    val joinKeyOf = UnsafeProjection.create((1 until layout.numPrefixColumns).map { ordinal =>
      BoundReference(ordinal, types(ordinal), nullable = true)
    })
    DistinctRows(store.iterator().map(entry => joinKeyOf(entry.key))).iterator
  }

  /** Returns the stored rows of a side at a join key without changes. */
  def rowsIn(state: JoinSideState): Seq[StoredCopies] = {
    val rows = state.unchanged()
    val kept = mutable.ArrayBuffer.empty[StoredCopies]
    try while (rows.next()) kept += new StoredCopies(rows.row.copy(), rows.copies)
    finally rows.close()
    kept.toSeq
  }
}
