// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.{IntegerType, LongType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.{ChangeMetrics, RowsByKey}

/**
 * Lets the first rows of each partition through and counts them; none of them ever goes.
 *
 * @param input
 *   the columns of a row that comes
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
