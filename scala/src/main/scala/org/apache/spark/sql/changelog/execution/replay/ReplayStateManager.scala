// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.LongType

import org.apache.spark.sql.changelog.execution.DistinctRows

/** Where the rows of partitions are kept, each with its count. */
private[replay] trait PartitionRows {

  /** Visits all rows of the partition that `row` is in. Rows are handed over for good. */
  def foreachOfPartition(row: UnsafeRow)(visit: (UnsafeRow, Long) => Unit): Unit

  /** How often `row` is there. */
  def count(row: UnsafeRow): Long

  /** Keeps `row` with this count; a row with count 0 is forgotten. */
  def update(row: UnsafeRow, count: Long): Unit
}

/** Keeps rows in a state store, in the columns [[ReplayLayout]] describes. */
private[replay] class ReplayStateManager(layout: ReplayLayout, store: StateStore)
    extends PartitionRows {
  private val prefixOf =
    UnsafeProjection.create(layout.key.take(layout.numPrefixColumns), layout.key)
  private val countRow = new SpecificInternalRow(Seq(LongType))
  private val valueOf = UnsafeProjection.create(layout.valueSchema)

  var numUpdated: Long = 0
  var numRemoved: Long = 0

  override def foreachOfPartition(row: UnsafeRow)(visit: (UnsafeRow, Long) => Unit): Unit =
    foreachIn(prefixOf(row))(visit)

  /** Visits all rows of one of [[partitions]]. */
  def foreachIn(prefix: UnsafeRow)(visit: (UnsafeRow, Long) => Unit): Unit = {
    val entries = store.prefixScan(prefix)
    try entries.foreach(entry => visit(entry.key.copy(), entry.value.getLong(0)))
    finally entries.close()
  }

  /** The partitions that have rows, each as what all keys of its rows begin with. */
  def partitions: Array[UnsafeRow] = DistinctRows(
    store.iterator().filter(entry => layout.isRow(entry.key)).map(entry => prefixOf(entry.key)))

  override def count(row: UnsafeRow): Long = {
    val value = store.get(row)
    if (value == null) 0L else value.getLong(0)
  }

  override def update(row: UnsafeRow, count: Long): Unit =
    if (count == 0) {
      store.remove(row)
      numRemoved += 1
    } else {
      countRow.setLong(0, count)
      store.put(row, valueOf(countRow))
      numUpdated += 1
    }

  private lazy val keyOfVersion = UnsafeProjection
    .create(layout.keyOfVersion)
    .apply(InternalRow.empty)

  /** Whether a version of the only partition has been given out. */
  def hasVersion: Boolean = store.get(keyOfVersion) != null

  def setHasVersion(): Unit = {
    countRow.setLong(0, 1)
    store.put(keyOfVersion, valueOf(countRow))
  }
}
