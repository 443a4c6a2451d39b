// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.execution.CountedTail

/**
 * Reads and writes the rows of partitions, in the columns of [[RankLayout]].
 *
 * An operator touches each partition once per batch: [[load]], change, then [[save]].
 */
private[rank] class RankStateManager(layout: RankLayout, store: StateStore)
    extends CountedTail[UnsafeRow] {
  private val numColumns = layout.rowColumns.size
  private val countOrdinal = 2
  private val rowOrdinal = layout.keyColumns.size

  private val keyOf = projection(layout.keySchema)
  private val valueOf = projection(layout.valueSchema)
  private val suffix = new GenericInternalRow(1)
  private val keyRow = new JoinedRow
  private val headRow = new GenericInternalRow(layout.valueSchema.size)
  private val countRow = new GenericInternalRow(layout.valueSchema.size)

  private var partition: UnsafeRow = _

  var numUpdated: Long = 0
  var numRemoved: Long = 0

  private def projection(schema: StructType): UnsafeProjection = {
    val types: Seq[DataType] = schema.map(_.dataType)
    UnsafeProjection.create(types.zipWithIndex.map { case (dataType, ordinal) =>
      BoundReference(ordinal, dataType, nullable = true)
    })
  }

  /** Fills `head` with the rows of a partition. */
  def load(key: UnsafeRow, head: RankHead): Unit = {
    partition = key
    val stored = store.get(stateKey(null))
    if (stored == null) head.reset(0)
    else {
      // the head's rows point into the record, which reading the next record may overwrite
      val record = stored.copy()
      head.reset(if (layout.keepsOthers) record.getLong(countOrdinal) else 0L)
      val rows = record.getArray(0)
      val counts = if (record.isNullAt(1)) null else record.getArray(1)
      var index = 0
      while (index < rows.numElements()) {
        val row = rows.getStruct(index, numColumns).asInstanceOf[UnsafeRow]
        head.append(row, if (counts == null) 1L else counts.getLong(index))
        index += 1
      }
    }
  }

  /** Writes the rows of the last loaded partition, if they have changed. */
  def save(head: RankHead): Unit =
    if (!head.isChanged) ()
    else if (head.size == 0 && head.numTailEntries == 0) {
      store.remove(stateKey(null))
      numRemoved += 1
    } else {
      headRow.update(0, new GenericArrayData(Array.tabulate[Any](head.size)(head.entry)))
      headRow.update(1, countsOf(head))
      if (layout.keepsOthers) headRow.update(countOrdinal, head.numTailEntries)
      store.put(stateKey(null), valueOf(headRow))
      numUpdated += 1
    }

  private def countsOf(head: RankHead): ArrayData =
    if ((0 until head.size).forall(head.count(_) == 1)) null
    else new GenericArrayData(Array.tabulate(head.size)(head.count))

  /** Returns the state key of a row in the tail of the last loaded partition, or of the head for null. */
  private def stateKey(row: UnsafeRow): UnsafeRow =
    if (!layout.keepsOthers) partition
    else {
      suffix.update(0, row)
      keyOf(keyRow(partition, suffix))
    }

  override def count(row: UnsafeRow): Long = {
    val value = store.get(stateKey(row))
    if (value == null) 0L else value.getLong(countOrdinal)
  }

  override def update(row: UnsafeRow, count: Long): Unit =
    if (count == 0) {
      store.remove(stateKey(row))
      numRemoved += 1
    } else {
      countRow.update(countOrdinal, count)
      store.put(stateKey(row), valueOf(countRow))
      numUpdated += 1
    }

  override def foreach(visit: (UnsafeRow, Long) => Unit): Unit = {
    val entries = store.prefixScan(partition)
    try {
      entries.foreach { entry =>
        if (!entry.key.isNullAt(rowOrdinal)) {
          visit(
            entry.key.copy().getStruct(rowOrdinal, numColumns),
            entry.value.getLong(countOrdinal))
        }
      }
    } finally entries.close()
  }
}
