// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import java.util.Comparator

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.execution.GroupedIterator
import org.apache.spark.sql.execution.streaming.state.{StateStore, UnsafeRowPair}
import org.apache.spark.sql.types.{IntegerType, LongType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.expiry.{EntryTimes, EventTimeOf}
import org.apache.spark.sql.changelog.execution.{
  ChangeMetrics, EventTimeBound, RowOrder, RowsByKey
}

/**
 * Holds each partition's earliest row until the watermark passes the row's event time.
 *
 * {{{
 *   state          in              watermark    out
 *   a 10:05        a 10:02
 *   a 10:02                        10:03        +I a 10:02
 *   a -            a 10:07                                    the first row has been emitted
 * }}}
 *
 * A row that arrives afterwards cannot be earlier, because it would be late.
 *
 * @param input
 *   the columns of an input row
 * @param due
 *   the entries whose row the watermark has passed, and entries of expired partitions
 */
private[rank] final class EarliestRows(
    layout: RankLayout,
    input: Seq[Attribute],
    store: StateStore,
    changes: Iterator[InternalRow],
    due: => Iterator[UnsafeRowPair],
    metrics: ChangeMetrics)
    extends Iterator[InternalRow] {
  private val numColumns = layout.rowColumns.size
  private val rowOf = UnsafeProjection.create(layout.rowColumns, input)
  private val order: Comparator[UnsafeRow] =
    RowOrder.total(GenerateOrdering.generate(layout.rowOrder, layout.rowColumns))
  private val value = new GenericInternalRow(1)
  private val valueOf = UnsafeProjection.create(layout.valueSchema)
  private val outputOf = new RankOutput(layout)

  private lazy val emitted: Iterator[InternalRow] = {
    keepEarliest()
    // a store must not be written during a scan
    due.map(_.key.copy()).toArray.iterator.flatMap(pass)
  }

  override def hasNext: Boolean = emitted.hasNext

  override def next(): InternalRow = emitted.next()

  private def row(stored: UnsafeRow): UnsafeRow = stored.getStruct(0, numColumns)

  /** Stores the earliest rows. The input is sorted, so a partition's first row is the earliest of the batch. */
  private def keepEarliest(): Unit =
    GroupedIterator(changes, layout.key, input).foreach { case (partition, rows) =>
      val key = partition.asInstanceOf[UnsafeRow]
      val earliest = rowOf(rows.next())
      val stored = store.get(key)
      val isEarlier =
        stored == null || !stored.isNullAt(0) && order.compare(earliest, row(stored)) < 0
      if (isEarlier) put(key, earliest)
    }

  /** Emits the row of a partition, or removes the entry of an expired partition. */
  private def pass(key: UnsafeRow): Option[InternalRow] = {
    val stored = store.get(key)
    if (stored.isNullAt(0)) {
      store.remove(key)
      metrics.removed += 1
      None
    } else {
      val output = outputOf(key, new RankedRow(row(stored), 1))
      put(key, null)
      metrics.emitted += 1
      Some(output)
    }
  }

  private def put(key: UnsafeRow, row: UnsafeRow): Unit = {
    value.update(0, row)
    store.put(key, valueOf(value))
    metrics.updated += 1
  }
}

private[rank] object EarliestRows {

  /**
   * Returns the times of entries: an entry with a row is due at the row's time, the others with their
   * partition.
   *
   * @param bound
   *   the watermark on the column in the rank order
   */
  def times(
      layout: RankLayout,
      bound: EventTimeBound,
      ofPartition: Option[EntryTimes]): EntryTimes = {
    val numColumns = layout.rowColumns.size
    val timeOf = new EventTimeOf(bound.column, layout.rowColumns)
    (key, value, after) =>
      if (!value.isNullAt(0)) timeOf(value.getStruct(0, numColumns))
      else ofPartition.map(_.dueAt(key, value, after)).getOrElse(EntryTimes.Never)
  }
}

/**
 * Passes and counts the first rows of each partition, over insert-only input.
 *
 * @param input
 *   the columns of an input row
 */
private[rank] final class FirstRows(
    layout: RankLayout,
    input: Seq[Attribute],
    store: StateStore,
    changes: Iterator[InternalRow],
    metrics: ChangeMetrics)
    extends Iterator[InternalRow] {
  import layout.ranking

  private val partitions = RowsByKey(changes, layout.key, input)
  private val number = new SpecificInternalRow(Seq(IntegerType))
  private val columnsAndNumber = new JoinedRow
  private val outputOf = UnsafeProjection.create(
    (layout.columns ++ ranking.number) :+ Literal(RowKind.Insert),
    input ++ ranking.number)
  private val count = new SpecificInternalRow(Seq(LongType))
  private val countOf = UnsafeProjection.create(layout.valueSchema)

  private var rows: Iterator[InternalRow] = Iterator.empty
  private var key: UnsafeRow = _
  private var numBefore = 0L
  private var numRows = 0L

  override def hasNext: Boolean = {
    var isShown = false
    while (!isShown && (rows.hasNext || nextPartition())) {
      isShown = numRows < ranking.end && numRows + 1 >= ranking.start
      if (!isShown) {
        rows.next()
        if (numRows < ranking.end) numRows += 1
        if (!rows.hasNext) save()
      }
    }
    isShown
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    val row = rows.next()
    numRows += 1
    number.setInt(0, numRows.toInt)
    val output = outputOf(columnsAndNumber(row, number))
    if (!rows.hasNext) save()
    metrics.emitted += 1
    output
  }

  private def nextPartition(): Boolean = partitions.hasNext && {
    val (partition, itsRows) = partitions.next()
    key = partition.asInstanceOf[UnsafeRow]
    rows = itsRows
    val stored = store.get(key)
    numBefore = if (stored == null) 0L else stored.getLong(0)
    numRows = numBefore
    true
  }

  private def save(): Unit = if (numRows != numBefore) {
    count.setLong(0, numRows)
    store.put(key, countOf(count))
    numBefore = numRows
    metrics.updated += 1
  }
}
