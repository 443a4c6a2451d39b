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
 * Joins all rows that a join keeps, one join key after the other.
 *
 * @param emitsPairs
 *   whether rows come out together with those they match
 * @param condition
 *   what rows with equal join keys must meet besides
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

  /** The rows of the result, each as an insert. */
  def rows: Iterator[InternalRow] = joinKeys(layout, store).flatMap(of)

  private def of(joinKey: UnsafeRow): Iterator[InternalRow] = {
    Seq(left, right).foreach { side =>
      side.state.begin(joinKey)
      side.state.load()
    }
    val isCounted = right.layout.form == SideForm.KeyCount
    val rightRows = if (isCounted) Nil else keptOf(right.state)
    val leftRows = keptOf(left.state)
    leftRows.iterator.flatMap { kept =>
      val matched = rightRows.filter(other => matches(kept.row, other.row))
      matched.foreach(_.matches += kept.copies)
      kept.matches = if (isCounted) right.state.totalBefore else matched.map(_.copies).sum
      val pairs = if (emitsPairs) matched.iterator else Iterator.empty
      pairs.flatMap(other => copies(kept.row, other.row, kept.copies * other.copies)) ++ {
        val beside = left.padding(kept.copies, kept.matches)
        if (beside == null) Iterator.empty else copies(kept.row, beside, kept.copies)
      }
    } ++ rightRows.iterator.flatMap { other =>
      val beside = right.padding(other.copies, other.matches)
      if (beside == null) Iterator.empty else copies(beside, other.row, other.copies)
    }
  }

  private def matches(leftRow: InternalRow, rightRow: InternalRow): Boolean =
    condition.forall(_.eval(joined(leftRow, rightRow)))

  private def copies(left: InternalRow, right: InternalRow, count: Long): Iterator[InternalRow] =
    Iterator.range(0, count.toInt).map(_ => rowOf(output(left, right)))
}

private[join] object StoredJoin {

  /** A row that is kept, so many times, and how many it matches. */
  final class Kept(val row: UnsafeRow, val copies: Long) {
    var matches = 0L
  }

  /** The join keys of which anything is kept. Their entries do not lie together. */
  def joinKeys(layout: JoinLayout, store: StateStore): Iterator[UnsafeRow] = {
    val types = layout.keySchema.map(_.dataType)
    val joinKeyOf = UnsafeProjection.create((1 until layout.numPrefixColumns).map { ordinal =>
      BoundReference(ordinal, types(ordinal), nullable = true)
    })
    DistinctRows(store.iterator().map(entry => joinKeyOf(entry.key))).iterator
  }

  /** The rows of a side that is at a join key, and has no changes of it. */
  def keptOf(state: JoinSideState): Seq[Kept] = {
    val rows = state.unchanged()
    val kept = mutable.ArrayBuffer.empty[Kept]
    try while (rows.next()) kept += new Kept(rows.row.copy(), rows.copies)
    finally rows.close()
    kept.toSeq
  }
}
