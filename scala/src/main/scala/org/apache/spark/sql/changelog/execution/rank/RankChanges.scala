// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import java.util.{ArrayList, Comparator}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.IntegerType

import org.apache.spark.sql.changelog.execution._
import org.apache.spark.sql.changelog.plans.RankStrategy
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/**
 * Applies a batch's changes to one partition after the other, and emits what differs.
 *
 * @param input
 *   the columns of a change
 */
private[rank] final class RankChanges(
    layout: RankLayout,
    input: Seq[Attribute],
    store: StateStore,
    changes: Iterator[InternalRow],
    metrics: ChangeMetrics,
    unmatched: UnmatchedRetractions)
    extends DifferenceIterator(
      layout.columns.size + layout.ranking.number.size,
      layout.ranking.updateKind == UpdateKind.BeforeAndAfter,
      metrics) {
  import layout.ranking

  private val state = new RankStateManager(layout, store)
  private val sorted: Comparator[InternalRow] =
    GenerateOrdering.generate(layout.rowOrder, layout.rowColumns)
  private val rowOrder: Comparator[UnsafeRow] = sorted.compare(_, _)
  private val totalOrder: Comparator[UnsafeRow] = RowOrder.total(sorted)
  private val head = RankHead(layout)
  private val processor: ChangelogRankProcessor = ranking.strategy match {
    case RankStrategy.UpdateFast => new UpdateFastProcessor(head, state, keyOf(ranking.replaceBy))
    case RankStrategy.Retract =>
      val describe = (row: UnsafeRow) => StateColumns.keyText(layout.rowColumns, row)
      new RetractProcessor(head, state, rowOrder, unmatched, describe)
    case _ => new AppendFastProcessor(head, state)
  }
  private val difference: RankDifference =
    if (ranking.bySlot) DifferenceBySlot
    else new DifferenceByRow(totalOrder, ranking.number.isDefined, ranking.pairBy.map(keyOf))

  private val partitions = RowsByKey(changes, layout.key, input)
  private val rowOf = UnsafeProjection.create(layout.rowColumns, input)
  private val kindOrdinal = RowKind.ordinal(ranking.inputKind, input)
  // an update's rows are emitted together
  private val outputBefore = new RankOutput(layout)
  private val outputAfter = new RankOutput(layout)

  private var differences = new ArrayList[RankedChange]
  private var position = -1
  private var partition: UnsafeRow = _

  /** The columns of a key, which the partition's are left out of. */
  private def keyOf(key: Seq[Attribute]): UnsafeRow => UnsafeRow = {
    val columns = key.filter(column => layout.rowColumns.exists(_.exprId == column.exprId))
    val projection = UnsafeProjection.create(columns, layout.rowColumns)
    row => projection(row)
  }

  override protected def nextKey(): Boolean = {
    position += 1
    while (position >= differences.size && partitions.hasNext) {
      nextPartition()
      position = 0
    }
    position < differences.size
  }

  private def nextPartition(): Unit = {
    val (key, itsChanges) = partitions.next()
    partition = key.asInstanceOf[UnsafeRow]
    state.load(partition, head)
    processor.begin()
    itsChanges.foreach { change =>
      processor.add(rowOf(change), RowKind.retracts(RowKind.at(change, kindOrdinal)))
    }
    processor.end()
    state.save(head)
    differences = difference(processor.before, processor.after)
  }

  override protected def before: UnsafeRow =
    outputBefore(partition, differences.get(position).before)

  override protected def after: UnsafeRow =
    outputAfter(partition, differences.get(position).after)
}

/** Makes rows of the result, with the kind `+I`. */
private final class RankOutput(layout: RankLayout) {
  import layout.ranking

  private val projection = UnsafeProjection.create(
    (layout.columns ++ ranking.number) :+ Literal(RowKind.Insert),
    layout.keyColumns ++ layout.rowColumns ++ ranking.number)
  private val number = new SpecificInternalRow(Seq(IntegerType))
  private val columns = new JoinedRow
  private val all = new JoinedRow

  /** The output row; null for null. */
  def apply(partition: UnsafeRow, ranked: RankedRow): UnsafeRow =
    if (ranked == null) null
    else {
      number.setInt(0, ranked.rank)
      projection(all(columns(partition, ranked.row), number))
    }
}
