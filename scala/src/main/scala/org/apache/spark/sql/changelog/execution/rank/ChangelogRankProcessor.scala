// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import java.util.{ArrayList, Comparator, HashMap, LinkedHashMap}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.IntegerType

import org.apache.spark.sql.changelog.execution._
import org.apache.spark.sql.changelog.plans.RankStrategy
import org.apache.spark.sql.changelog.{RowKind, UpdateKind}

/**
 * Applies a batch's changes to the best rows of each partition.
 *
 * Call for each partition, after loading its head: [[begin]], [[add]] for each change, then [[end]]. Afterwards
 * [[before]] and [[after]] hold the visible rows before and after the batch.
 */
private[rank] abstract class ChangelogRankProcessor(
    head: RankHead,
    tail: CountedTail[UnsafeRow]) {

  /** The visible rows before the batch. */
  var before: ArrayList[RankedRow] = _

  /** The visible rows after the batch. */
  var after: ArrayList[RankedRow] = _

  def begin(): Unit = before = head.shown()

  /** Adds a change of the partition. The caller may overwrite `row` afterwards. */
  def add(row: UnsafeRow, retracts: Boolean): Unit

  def end(): Unit = after = head.complete(tail)
}

/** Processes insert-only input. */
private[rank] final class AppendFastProcessor(head: RankHead, tail: CountedTail[UnsafeRow])
    extends ChangelogRankProcessor(head, tail) {

  override def add(row: UnsafeRow, retracts: Boolean): Unit = head.offer(row, tail)
}

/**
 * Processes rows that replace the row with an equal key by a better row. The input may lack before images,
 * because the stored row is replaced.
 */
private[rank] final class UpdateFastProcessor(
    head: RankHead,
    tail: CountedTail[UnsafeRow],
    keyOf: UnsafeRow => UnsafeRow)
    extends ChangelogRankProcessor(head, tail) {
  private val known = new HashMap[UnsafeRow, UnsafeRow]
  private val changes = new LinkedHashMap[UnsafeRow, UnsafeRow]

  /** Adds a change. Several changes of a key must arrive in the order in which they were made. */
  override def add(row: UnsafeRow, retracts: Boolean): Unit =
    if (!retracts) changes.put(keyOf(row).copy(), row.copy())

  override def end(): Unit = {
    known.clear()
    var index = 0
    while (index < head.size) {
      known.put(keyOf(head.entry(index)).copy(), head.entry(index))
      index += 1
    }
    changes.forEach { (key, row) =>
      val replaced = known.get(key)
      if (replaced != null) head.withdraw(replaced)
      head.offer(row, tail)
    }
    changes.clear()
    super.end()
  }
}

/**
 * Processes inserts and retractions in row order. Equal rows are adjacent and cancel out.
 *
 * @param order
 *   the order of the input; different rows may compare as equal
 * @param describe
 *   returns the text of a row for errors
 */
private[rank] final class RetractProcessor(
    head: RankHead,
    tail: CountedTail[UnsafeRow],
    order: Comparator[UnsafeRow],
    unmatched: UnmatchedRetractions,
    describe: UnsafeRow => String)
    extends ChangelogRankProcessor(head, tail) {
  private val equals = new SignedRows
  private var first: UnsafeRow = _

  override def add(row: UnsafeRow, retracts: Boolean): Unit = {
    if (first != null && order.compare(first, row) != 0) apply()
    val net = equals(row)
    net.count += (if (retracts) -1L else 1L)
    if (first == null) first = net.row
  }

  override def end(): Unit = {
    apply()
    super.end()
  }

  private def apply(): Unit = {
    equals.left.foreach { net =>
      val before = head.add(net.row, net.count, tail)
      unmatched.note(before, before + net.count, describe(net.row))
    }
    equals.clear()
    first = null
  }
}

/**
 * Applies a batch's changes to each partition and emits the difference.
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
  // two rows, because both rows of an update are emitted together
  private val outputBefore = new RankOutput(layout)
  private val outputAfter = new RankOutput(layout)

  private var differences = new ArrayList[RankedChange]
  private var position = -1
  private var partition: UnsafeRow = _

  /** Returns the projection to a key's columns, without the partition columns. */
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

/** Builds rows of the result, with the kind `+I`. */
private final class RankOutput(layout: RankLayout) {
  import layout.ranking

  private val projection = UnsafeProjection.create(
    (layout.columns ++ ranking.number) :+ Literal(RowKind.Insert),
    layout.keyColumns ++ layout.rowColumns ++ ranking.number)
  private val number = new SpecificInternalRow(Seq(IntegerType))
  private val columns = new JoinedRow
  private val all = new JoinedRow

  /** Returns the output row; null for null. */
  def apply(partition: UnsafeRow, ranked: RankedRow): UnsafeRow =
    if (ranked == null) null
    else {
      number.setInt(0, ranked.rank)
      projection(all(columns(partition, ranked.row), number))
    }
}
