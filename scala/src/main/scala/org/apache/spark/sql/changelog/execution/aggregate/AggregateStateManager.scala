// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.util.{Arrays, Comparator}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData, TypeUtils, UnsafeRowUtils}
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.execution.CountedTail

/**
 * Reads and writes the groups of a partition, in the columns of [[AggregateLayout]].
 *
 * An operator touches each group once per batch: [[load]], change, then [[save]] or [[remove]].
 *
 * @param headSize
 *   the number of values to refill the head of an extremum with
 */
private[aggregate] class AggregateStateManager(
    layout: AggregateLayout,
    headSize: Int,
    store: StateStore) {
  import AggregateStateManager._

  private val buffers = layout.buffers.size
  private val extrema = layout.extrema.toArray
  private val groupSize = layout.groupSchema.size
  private val valueTypes = layout.values.map(_.dataType).toArray
  // created once: reading a column by type alone looks up the session's settings for each value
  private val valueOf = valueTypes.map(InternalRow.getAccessor(_, nullable = false))

  private val keyTypes = layout.keySchema.map(_.dataType)
  private val keyProjection = UnsafeProjection.create(keyTypes.zipWithIndex.map {
    case (dataType, ordinal) => BoundReference(ordinal, dataType, nullable = true)
  })
  private val suffix = new GenericInternalRow(valueTypes.length)
  private val table = new GenericInternalRow(1)
  private val tableAndGroup = new JoinedRow
  private val keyRow = new JoinedRow

  private val valueProjection = UnsafeProjection.create(
    layout.valueSchema.map(_.dataType).zipWithIndex.map { case (dataType, ordinal) =>
      BoundReference(ordinal, dataType, nullable = true)
    })
  private val headColumns = new GenericInternalRow(2 * extrema.length)
  private val groupRow = new JoinedRow
  // count and group; exactly one of the two is set
  private val value = new GenericInternalRow(2)

  /** The heads of the extrema, for the last loaded group. */
  val heads: Array[ExtremumHead] =
    extrema.map(extremum => new ExtremumHead(comparator(extremum), headSize))

  /** The values of the last loaded group, by kind. */
  val values: Array[ExtremumValues] = valueTypes.indices.map { valueIndex =>
    val ofValue = heads.zip(extrema).collect {
      case (head, extremum) if extremum.valueIndex == valueIndex => head
    }
    new ExtremumValues(ofValue, new Table(valueIndex))
  }.toArray

  private var group: UnsafeRow = _

  /** Returns the record of a group, or null, and sets [[heads]] and [[values]] to the group's. */
  def load(key: UnsafeRow): UnsafeRow = {
    group = key
    val stored = store.get(stateKey(key))
    if (extrema.isEmpty || stored == null) {
      heads.foreach(_.reset(0))
      stored
    } else {
      val record = stored.getStruct(groupOrdinal, groupSize)
      var index = 0
      while (index < heads.length) {
        readHead(index, record)
        index += 1
      }
      record
    }
  }

  /** Writes the record of the last loaded group. */
  def save(newBuffers: UnsafeRow): Unit =
    if (extrema.isEmpty) store.put(group, newBuffers)
    else {
      var index = 0
      while (index < heads.length) {
        headColumns.update(2 * index, writeHead(heads(index)))
        headColumns.update(2 * index + 1, heads(index).numTailEntries)
        index += 1
      }
      value.setNullAt(countOrdinal)
      value.update(groupOrdinal, groupRow(newBuffers, headColumns))
      store.put(stateKey(group), valueProjection(value))
    }

  /** Removes all entries of the last loaded group. */
  def remove(): Unit = {
    values.foreach(_.clear())
    store.remove(stateKey(group))
  }

  private def stateKey(key: UnsafeRow): UnsafeRow =
    if (extrema.isEmpty) key else entryKey(key, tableNumber = 0, valueIndex = -1, null)

  private def entryKey(
      key: UnsafeRow,
      tableNumber: Int,
      valueIndex: Int,
      value: Any): UnsafeRow = {
    table.update(0, tableNumber)
    var index = 0
    while (index < valueTypes.length) {
      suffix.update(index, if (index == valueIndex) value else null)
      index += 1
    }
    keyProjection(keyRow(tableAndGroup(table, key), suffix))
  }

  private def readHead(index: Int, record: InternalRow): Unit = {
    val head = heads(index)
    val ordinal = buffers + 2 * index
    head.reset(record.getLong(ordinal + 1))
    val array = record.getArray(ordinal)
    val accessor = valueOf(extrema(index).valueIndex)
    var element = 0
    while (element < array.numElements()) {
      val entry = array.getStruct(element, 2)
      head.append(InternalRow.copyValue(accessor(entry, 0)), entry.getLong(1))
      element += 1
    }
  }

  private def writeHead(head: ExtremumHead): ArrayData = {
    val entries = Array.tabulate[Any](head.size) { index =>
      InternalRow(head.entry(index), head.count(index))
    }
    new GenericArrayData(entries)
  }

  private def comparator(extremum: Extremum): Comparator[Any] = {
    val dataType = extremum.comparedAs
    val ascending: Comparator[Any] = dataType match {
      case pair: StructType if extremum.ordersAnother && !RowOrdering.isOrderable(pair) =>
        val first = TypeUtils.getInterpretedOrdering(pair.head.dataType)
        val orderOf = InternalRow.getAccessor(pair.head.dataType, nullable = false)
        (left, right) =>
          first.compare(
            orderOf(left.asInstanceOf[InternalRow], 0),
            orderOf(right.asInstanceOf[InternalRow], 0))
      case _ => TypeUtils.getInterpretedOrdering(dataType)
    }
    val order = if (extremum.largest) ascending.reversed else ascending
    if (RowOrdering.isOrderable(dataType) && UnsafeRowUtils.isBinaryStable(dataType)) order
    else order.thenComparing(byBytes(dataType))
  }

  /** Returns an order by bytes, for values that compare as equal, such as texts with a collation. */
  private def byBytes(dataType: DataType): Comparator[Any] = {
    val projection = UnsafeProjection.create(Array(dataType))
    def bytes(value: Any): Array[Byte] = projection(InternalRow(value)).getBytes.clone()
    (left: Any, right: Any) => Arrays.compare(bytes(left), bytes(right))
  }

  /** The values of a kind in no head, for the last loaded group. */
  private class Table(valueIndex: Int) extends CountedTail[Any] {
    private val tableNumber = valueIndex + 1
    private val keyOrdinal = 1 + layout.grouping.size + valueIndex

    override def count(entry: Any): Long = {
      val row = store.get(entryKey(group, tableNumber, valueIndex, entry))
      if (row == null) 0L else row.getLong(countOrdinal)
    }

    override def update(entry: Any, count: Long): Unit = {
      val key = entryKey(group, tableNumber, valueIndex, entry)
      if (count == 0) store.remove(key)
      else {
        value.update(countOrdinal, count)
        value.setNullAt(groupOrdinal)
        store.put(key, valueProjection(value))
      }
    }

    override def foreach(visit: (Any, Long) => Unit): Unit = {
      val entries = store.prefixScan(prefix)
      try {
        entries.foreach { entry =>
          val value = valueOf(valueIndex)(entry.key, keyOrdinal)
          visit(InternalRow.copyValue(value), entry.value.getLong(countOrdinal))
        }
      } finally entries.close()
    }

    private lazy val prefixProjection = UnsafeProjection.create(
      keyTypes.take(1 + layout.grouping.size).zipWithIndex.map { case (dataType, ordinal) =>
        BoundReference(ordinal, dataType, nullable = true)
      })

    private def prefix: UnsafeRow = {
      table.update(0, tableNumber)
      prefixProjection(tableAndGroup(table, group))
    }
  }
}

private object AggregateStateManager {
  private val countOrdinal = 0
  private val groupOrdinal = 1
}
