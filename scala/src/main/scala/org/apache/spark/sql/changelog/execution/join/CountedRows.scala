// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.util.LinkedHashMap

import org.apache.spark.sql.catalyst.expressions.{
  BoundReference, GenericInternalRow, UnsafeProjection, UnsafeRow
}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.execution.UnmatchedRetractions

/**
 * Stores rows without a key: `join key, row -> count`.
 *
 * The count of a row is negative after an unmatched retraction. Such a row is not visible.
 */
private[join] final class CountedRows(parts: JoinSideParts) extends JoinSideState(parts) {

  private final class Slot(val row: UnsafeRow) {
    var delta: Long = 0
    var countBefore: Long = 0
    var isStored: Boolean = false
    var change: RowChange = _

    def countAfter: Long = countBefore + delta
  }

  private var slots = new LinkedHashMap[UnsafeRow, Slot]
  private var isLarge = false

  override protected def clear(): Unit =
    // a cleared map keeps the capacity of the largest join key
    if (isLarge) slots = new LinkedHashMap[UnsafeRow, Slot] else slots.clear()

  override def add(row: UnsafeRow, retracts: Boolean): Unit = {
    val known = slots.get(row)
    val slot = if (known != null) known else new Slot(row)
    if (known == null) slots.put(row, slot)
    slot.delta += (if (retracts) -1 else 1)
  }

  override def numHeld: Int = slots.size

  override def holds(row: UnsafeRow): Boolean = slots.containsKey(row)

  override def load(): Unit = {
    isLarge = slots.size > 64
    val all = slots.values.iterator
    while (all.hasNext) {
      val slot = all.next()
      if (slot.delta == 0) all.remove() else load(slot)
    }
  }

  private def load(slot: Slot): Unit = {
    val value = get(slot.row)
    slot.isStored = value != null
    if (slot.isStored) slot.countBefore = countOf(value)
    val (before, after) = (slot.countBefore, slot.countAfter)
    noteUnmatched(UnmatchedRetractions.count(before, after))
    if (before > 0 || after > 0) {
      slot.change = new RowChange(
        if (before > 0) slot.row else null,
        if (after > 0) slot.row else null,
        math.max(0L, before),
        math.max(0L, after))
      if (slot.isStored) slot.change.matchesBefore = matchesOf(value)
      changes += slot.change
    }
  }

  override def unchanged(): StoredRows = new Scan {
    override protected def isWanted: Boolean =
      countOf(value) > 0 && (slots.isEmpty || !slots.containsKey(suffixRow))

    override def row: UnsafeRow = suffixRow

    override def copies: Long = countOf(value)

    override def saveMatches(matches: Long): Unit = put(suffixRow, null, copies, matches)
  }

  override def save(): Unit = slots.values.forEach { slot =>
    if (slot.countAfter == 0) {
      remove(slot.row)
      noteDropped()
    } else {
      val matches = if (slot.change == null) 0 else slot.change.matchesAfter
      put(slot.row, null, slot.countAfter, matches)
      if (!slot.isStored) noteAdded()
    }
  }
}

/**
 * Stores the rows of an insert-only side: `join key, batch, part -> rows`.
 *
 * The rows of a batch are written together, under the number of the batch, so that no record has to be read
 * first. Equal rows are stored repeatedly.
 */
private[join] final class AppendedRows(parts: JoinSideParts) extends JoinSideState(parts) {
  import AppendedRows._

  private val partOf =
    UnsafeProjection.create(Chunk.zipWithIndex.map { case (field, ordinal) =>
      BoundReference(ordinal, field.dataType, nullable = false)
    })
  private val part = new GenericInternalRow(Chunk.size)

  // the number of parts written for a join key whose rows are added in parts
  private var lastKey: UnsafeRow = _
  private var numParts = 0

  override protected def clear(): Unit =
    if (joinKey != lastKey) {
      lastKey = joinKey.copy()
      numParts = 0
    }

  override def numHeld: Int = changes.size

  override def holds(row: UnsafeRow): Boolean = false

  override def add(row: UnsafeRow, retracts: Boolean): Unit =
    changes += new RowChange(null, row, 0, 1)

  override def load(): Unit = ()

  override def unchanged(): StoredRows = new Scan {
    private var rows: ArrayData = _
    private var index = 0

    override protected def isWanted: Boolean = true

    override def next(): Boolean = {
      index += 1
      if (rows == null || index == rows.numElements()) {
        rows = if (super.next()) rowsOf(value) else null
        index = 0
      }
      rows != null
    }

    override def row: UnsafeRow = rows.getStruct(index, numColumns).asInstanceOf[UnsafeRow]

    override def copies: Long = 1

    override def saveMatches(matches: Long): Unit =
      throw new UnsupportedOperationException("matches of appended rows are not kept")
  }

  override def save(): Unit = {
    var from = 0
    while (from < changes.size) {
      val until = math.min(from + LargestPart, changes.size)
      val rows = new Array[Any](until - from)
      for (index <- from until until) {
        rows(index - from) = changes(index).after
        noteAdded()
      }
      part.update(0, parts.store.version)
      part.update(1, numParts)
      numParts += 1
      put(partOf(part), new GenericArrayData(rows), count = 1, matches = 0)
      from = until
    }
  }
}

private[join] object AppendedRows {

  /** The columns after the join key. */
  val Chunk: StructType = new StructType().add("batch", "BIGINT").add("part", "INT")

  /** The maximum number of rows in a record. */
  private val LargestPart = 1024
}
