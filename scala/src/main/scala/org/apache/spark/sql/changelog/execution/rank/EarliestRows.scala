// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import java.util.Comparator

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{
  GenerateOrdering,
  GenerateUnsafeProjection
}
import org.apache.spark.sql.execution.GroupedIterator
import org.apache.spark.sql.execution.streaming.state.StateStore

import org.apache.spark.sql.changelog.execution.{EventTimeBound, RowOrder}

/**
 * Holds each partition's earliest row back until the watermark has passed it.
 *
 * {{{
 *   state          in              watermark    out
 *   a 10:05        a 10:02
 *   a 10:02                        10:03        +I a 10:02
 *   a -            a 10:07                                    the first row has been emitted
 * }}}
 *
 * No row is earlier that comes later, as it would come too late.
 *
 * @param bound
 *   the watermark on the column rows are ordered by
 */
private[rank] final class EarliestRows(
    operator: ChangelogRankExec,
    store: StateStore,
    changes: Iterator[InternalRow],
    bound: EventTimeBound)
    extends Iterator[InternalRow] {
  import operator.child
  import operator.ranking.layout

  private val numColumns = layout.rowColumns.size
  private val rowOf = GenerateUnsafeProjection.generate(layout.rowColumns, child.output)
  private val order: Comparator[UnsafeRow] =
    RowOrder.total(GenerateOrdering.generate(layout.rowOrder, layout.rowColumns))
  private val value = new GenericInternalRow(1)
  private val valueOf = UnsafeProjection.create(layout.valueSchema)
  private val outputOf = new RankOutput(operator)
  private val numOutputRows = operator.longMetric("numOutputRows")
  private val numUpdatedStateRows = operator.longMetric("numUpdatedStateRows")

  private lazy val emitted: Iterator[InternalRow] = {
    keepEarliest()
    bound.isOver(layout.rowColumns).fold(Iterator.empty[InternalRow]) { isOver =>
      // a store may not be written to while it is read
      val entries = store.iterator()
      val keys =
        try {
          entries
            .filter(entry => !entry.value.isNullAt(0) && isOver.eval(row(entry.value)))
            .map(_.key.copy())
            .toArray
        } finally entries.close()
      keys.iterator.map(emit)
    }
  }

  override def hasNext: Boolean = emitted.hasNext

  override def next(): InternalRow = emitted.next()

  private def row(stored: UnsafeRow): UnsafeRow = stored.getStruct(0, numColumns)

  /** Rows come sorted, so that the first of a partition is the earliest of the batch. */
  private def keepEarliest(): Unit =
    GroupedIterator(changes, layout.key, child.output).foreach { case (partition, rows) =>
      val key = partition.asInstanceOf[UnsafeRow]
      val earliest = rowOf(rows.next())
      val stored = store.get(key)
      val isEarlier =
        stored == null || !stored.isNullAt(0) && order.compare(earliest, row(stored)) < 0
      if (isEarlier) put(key, earliest)
    }

  private def emit(key: UnsafeRow): InternalRow = {
    val output = outputOf(key, new RankedRow(row(store.get(key)), 1))
    put(key, null)
    numOutputRows += 1
    output
  }

  private def put(key: UnsafeRow, row: UnsafeRow): Unit = {
    value.update(0, row)
    store.put(key, valueOf(value))
    numUpdatedStateRows += 1
  }
}
