// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.util.{Arrays, Comparator}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData, TypeUtils, UnsafeRowUtils}
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.execution.CountedTail

/**
 * Reads and writes the groups of one partition, in the columns [[AggregateLayout]] describes.
 *
 * A group is touched once per batch: [[load]] it, change it, [[save]] or [[remove]] it.
 *
 * @param headSize
 *   how many values the head of an extremum is refilled with
 */
private[aggregate] class AggregateStateManager(
    layout: AggregateLayout,
    headSize: Int,
    store: StateStore) {
  private val buffers = layout.buffers.size
  private val extrema = layout.extrema.toArray
  private val countOrdinal = buffers + 2 * extrema.length
  private val valueTypes = layout.values.map(_.dataType).toArray
  // made once: reading a column by its type alone looks up the session's settings every time
  private val valueOf = valueTypes.map(InternalRow.getAccessor(_, nullable = false))

  private val keyTypes = layout.keySchema.map(_.dataType)
  private val keyProjection = GenerateUnsafeProjection.generate(keyTypes.zipWithIndex.map {
    case (dataType, ordinal) => BoundReference(ordinal, dataType, nullable = true)
  })
  private val suffix = new GenericInternalRow(valueTypes.length)
  private val table = new GenericInternalRow(1)
  private val tableAndGroup = new JoinedRow
  private val keyRow = new JoinedRow

  private val valueProjection = GenerateUnsafeProjection.generate(
    layout.valueSchema.map(_.dataType).zipWithIndex.map { case (dataType, ordinal) =>
      BoundReference(ordinal, dataType, nullable = true)
    })
  private val headColumns = new GenericInternalRow(2 * extrema.length + 1)
  private val valueRow = new JoinedRow
  private val countRow = new GenericInternalRow(layout.valueSchema.size)

  /** The extrema of the group loaded last. */
  val heads: Array[ExtremumHead] =
    extrema.map(extremum => new ExtremumHead(comparator(extremum), headSize))

  /** The values of the group loaded last that are not in a head. */
  val tails: Array[CountedTail[Any]] = extrema.indices.map(new Tail(_): CountedTail[Any]).toArray

  private var group: UnsafeRow = _

  /** The record of a group, or null; [[heads]] and [[tails]] are then this group's. */
  def load(key: UnsafeRow): UnsafeRow = {
    group = key
    val value = store.get(stateKey(key))
    var index = 0
    while (index < heads.length) {
      readHead(index, value)
      index += 1
    }
    value
  }

  /** Writes the record of the group loaded last. */
  def save(newBuffers: UnsafeRow): Unit =
    if (extrema.isEmpty) store.put(group, newBuffers)
    else {
      var index = 0
      while (index < heads.length) {
        headColumns.update(2 * index, writeHead(heads(index)))
        headColumns.update(2 * index + 1, heads(index).numTailEntries)
        index += 1
      }
      store.put(stateKey(group), valueProjection(valueRow(newBuffers, headColumns)))
    }

  /** Removes all there is of the group loaded last. */
  def remove(): Unit = {
    var index = 0
    while (index < heads.length) {
      heads(index).clear(tails(index))
      index += 1
    }
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

  private def readHead(index: Int, value: InternalRow): Unit = {
    val head = heads(index)
    val ordinal = buffers + 2 * index
    if (value == null) head.reset(0)
    else {
      head.reset(value.getLong(ordinal + 1))
      val array = value.getArray(ordinal)
      val accessor = valueOf(extrema(index).valueIndex)
      var element = 0
      while (element < array.numElements()) {
        val entry = array.getStruct(element, 2)
        head.append(InternalRow.copyValue(accessor(entry, 0)), entry.getLong(1))
        element += 1
      }
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

  /** Tells values apart that compare as equal, as texts of a collation may. */
  private def byBytes(dataType: DataType): Comparator[Any] = {
    val projection = UnsafeProjection.create(Array(dataType))
    def bytes(value: Any): Array[Byte] = projection(InternalRow(value)).getBytes.clone()
    (left: Any, right: Any) => Arrays.compare(bytes(left), bytes(right))
  }

  /** The counted values of one extremum of the group loaded last. */
  private class Tail(index: Int) extends CountedTail[Any] {
    private val tableNumber = index + 1
    private val valueIndex = extrema(index).valueIndex
    private val keyOrdinal = 1 + layout.grouping.size + valueIndex

    override def count(value: Any): Long = {
      val row = store.get(entryKey(group, tableNumber, valueIndex, value))
      if (row == null) 0L else row.getLong(countOrdinal)
    }

    override def update(value: Any, count: Long): Unit = {
      val key = entryKey(group, tableNumber, valueIndex, value)
      if (count == 0) store.remove(key)
      else {
        countRow.update(countOrdinal, count)
        store.put(key, valueProjection(countRow))
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

    private lazy val prefixProjection = GenerateUnsafeProjection.generate(
      keyTypes.take(1 + layout.grouping.size).zipWithIndex.map { case (dataType, ordinal) =>
        BoundReference(ordinal, dataType, nullable = true)
      })

    private def prefix: UnsafeRow = {
      table.update(0, tableNumber)
      prefixProjection(tableAndGroup(table, group))
    }
  }
}
