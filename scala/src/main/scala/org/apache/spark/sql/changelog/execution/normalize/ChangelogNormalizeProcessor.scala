// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.normalize

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.execution.UnmatchedRetractions

/**
 * Replaces the stored row of each key by the newest change of the batch.
 *
 * @param input
 *   the columns of a change
 */
private[normalize] class ChangelogNormalizeProcessor(
    layout: NormalizeLayout,
    input: Seq[Attribute],
    store: StateStore,
    unmatched: UnmatchedRetractions) {
  import layout.feed.{columns, hasSnapshot, key, sequence}

  private val stored = layout.stored
  private val storedSequence = stored.slice(columns.size, columns.size + sequence.size)
  private val deletedOrdinal = stored.size - 1
  private val kindOrdinal = RowKind.ordinal(Some(layout.feed.kind), input)
  private val kind = Literal(RowKind.Insert)

  private val keyOf = UnsafeProjection.create(key, input)
  private val oldRow = layout.storedRow
  private val newRow = UnsafeProjection.create(columns :+ kind, input)
  private val newRecord =
    UnsafeProjection.create((columns ++ sequence) :+ Literal(false), input)
  private val tombstone = UnsafeProjection.create(
    (columns.map(column => Literal(null, column.dataType)) ++ sequence) :+ Literal(true),
    input)
  private val sequenceOf = UnsafeProjection.create(sequence, input)
  private val storedSequenceOf = UnsafeProjection.create(storedSequence, stored)
  private val ordering = GenerateOrdering.generate(sequence.zipWithIndex.map { case (column, i) =>
    SortOrder(BoundReference(i, column.dataType, nullable = true), Ascending)
  })

  private val age = GenerateOrdering.generate(layout.age, input)

  /** The key's row before the batch, with kind `+I`; null if there was no row. */
  var before: UnsafeRow = _

  /** The key's row after the batch, with kind `+I`; null if there is no row. */
  var after: UnsafeRow = _

  /** Whether the batch removed the key's record. */
  var removed: Boolean = false

  /** The number of changes older than the key's row before the batch, or in the snapshot. */
  var outdated: Long = 0

  private val positionOrdinal = input.indexWhere(_.exprId == layout.feed.position.exprId)
  private var snapshotRows = 0

  private val unsent =
    layout.feed.unavailable.map(names => new UnsentValues(key, columns, names, input))

  /** Processes the changes of a key. If values may be unsent, the changes must be sorted by age. */
  def process(changes: Iterator[InternalRow]): Unit = {
    // reading the next change overwrites the previous change
    var newest = changes.next().copy()
    val stateKey = keyOf(newest)
    val record = store.get(stateKey)
    val isStored = record != null && !record.getBoolean(deletedOrdinal)
    removed = false
    before = if (isStored) oldRow(record) else null
    var existedBefore = isStored || adds(newest)
    var numChanges = 1
    outdated = 0
    snapshotRows = 0
    noteSnapshot(newest, 0, stateKey)

    // records a change, and whether the older of two changes is outdated
    def note(change: InternalRow, loser: InternalRow): Unit = {
      existedBefore ||= adds(change)
      noteSnapshot(change, numChanges, stateKey)
      numChanges += 1
      if (record != null && isOlder(loser, record)) outdated += 1
    }
    unsent match {
      case None =>
        while (changes.hasNext) {
          val change = changes.next()
          val wins = age.compare(change, newest) > 0
          note(change, if (wins) newest else change)
          if (wins) newest = change.copy()
        }
      case Some(values) =>
        values.begin(before)
        newest = complete(values, newest, record)
        while (changes.hasNext) {
          val loser = newest
          newest = complete(values, changes.next().copy(), record)
          note(newest, loser)
        }
    }
    apply(newest, stateKey, record, isStored, existedBefore)
  }

  /**
   * Counts the changes before a snapshot row in the key's order as outdated, although they arrived after the
   * snapshot.
   */
  private def noteSnapshot(change: InternalRow, numBefore: Int, stateKey: UnsafeRow): Unit =
    if (hasSnapshot && change.getLong(positionOrdinal) < 0) {
      snapshotRows += 1
      if (snapshotRows > 1)
        throw runtime("CHANGELOG_SNAPSHOT_KEY_REPEATED", "key" -> text(stateKey))
      outdated += numBefore
    }

  private def text(stateKey: UnsafeRow): String =
    stateKey.toSeq(key.map(_.dataType)).mkString(", ")

  private def adds(change: InternalRow): Boolean =
    !RowKind.retracts(change.getByte(kindOrdinal))

  /** Returns a change with its unsent values filled in, unless the change is older than the stored row. */
  private def complete(
      values: UnsentValues,
      change: InternalRow,
      record: InternalRow): InternalRow =
    if (record != null && isOlder(change, record)) change
    else if (RowKind.retracts(change.getByte(kindOrdinal))) values.removed(change)
    else values.complete(change)

  private def apply(
      newest: InternalRow,
      stateKey: UnsafeRow,
      record: UnsafeRow,
      isStored: Boolean,
      existedBefore: Boolean): Unit =
    if (record != null && isOlder(newest, record)) {
      outdated += 1
      after = before
    } else if (RowKind.retracts(newest.getByte(kindOrdinal))) {
      after = null
      // a row may be inserted and deleted in the same batch, and a snapshot may already lack the deleted row
      if (!hasSnapshot && !existedBefore && newest.getByte(kindOrdinal) == RowKind.Delete) {
        unmatched(1, text(stateKey))
      }
      if (sequence.nonEmpty) store.put(stateKey, tombstone(newest))
      else if (isStored) {
        store.remove(stateKey)
        removed = true
      }
    } else {
      after = newRow(newest)
      unsent.foreach(_.check(newest))
      store.put(stateKey, newRecord(newest))
    }

  private def isOlder(newest: InternalRow, record: InternalRow): Boolean =
    sequence.nonEmpty && {
      val order = ordering.compare(sequenceOf(newest), storedSequenceOf(record))
      order < 0 || (order == 0 && newest.getByte(kindOrdinal) == RowKind.UpdateBefore)
    }
}

/**
 * Tracks a key's row through its changes, and fills in values that a change did not send because they had not
 * changed.
 *
 * @param names
 *   the column with the names of unsent columns
 * @param input
 *   the columns of a change
 */
private[normalize] class UnsentValues(
    key: Seq[Attribute],
    columns: Seq[Attribute],
    names: Attribute,
    input: Seq[Attribute]) {

  private val namesOrdinal = input.indexWhere(_.exprId == names.exprId)
  private val inputOrdinals =
    columns.map(column => input.indexWhere(_.exprId == column.exprId)).toArray
  private val ordinals: Map[String, Int] = columns.map(_.name).zipWithIndex.toMap
  private val types = input.map(_.dataType)
  private val storedOrdinals = columns.indices.toArray

  /** The current row, null if there is no row, and the ordinals of its columns. */
  private var row: InternalRow = _
  private var rowOrdinals: Array[Int] = storedOrdinals

  /** Starts with the stored row; null if there is no row. */
  def begin(stored: InternalRow): Unit = keep(stored, storedOrdinals)

  /** Records that `change` deletes the row. */
  def removed(change: InternalRow): InternalRow = {
    keep(null, storedOrdinals)
    change
  }

  /** Returns the change with its unsent values filled in from the current row, if there is a row. */
  def complete(change: InternalRow): InternalRow = {
    val missing = missingColumns(change)
    if (missing.isEmpty) {
      keep(change, inputOrdinals)
      change
    } else if (row == null) change
    else {
      val values = change.toSeq(types).toArray
      missing.foreach { ordinal =>
        values(inputOrdinals(ordinal)) = row.get(rowOrdinals(ordinal), columns(ordinal).dataType)
      }
      values(namesOrdinal) = null
      val completed = new GenericInternalRow(values)
      keep(completed, inputOrdinals)
      completed
    }
  }

  private def keep(newest: InternalRow, ordinals: Array[Int]): Unit = {
    row = newest
    rowOrdinals = ordinals
  }

  /** Fails for a change with unsent values that are unknown. */
  def check(change: InternalRow): Unit = missingColumns(change).headOption.foreach { ordinal =>
    val values = key.map(column => input.indexWhere(_.exprId == column.exprId)).map { at =>
      String.valueOf(change.get(at, types(at)))
    }
    throw runtime(
      "CHANGELOG_VALUE_UNAVAILABLE",
      "key" -> values,
      "column" -> columns(ordinal).name)
  }

  /** Returns the indexes of the table's columns that the change did not send. */
  private def missingColumns(change: InternalRow): Seq[Int] =
    if (change.isNullAt(namesOrdinal)) Nil
    else {
      change
        .getArray(namesOrdinal)
        .toArray[UTF8String](StringType)
        .toSeq
        .filter(_ != null)
        .flatMap(name => ordinals.get(name.toString))
    }
}
