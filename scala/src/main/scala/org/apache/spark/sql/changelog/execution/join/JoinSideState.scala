// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.util.LinkedHashMap

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types.{LongType, StructType}

import org.apache.spark.sql.changelog.execution.UnmatchedRetractions
import org.apache.spark.sql.changelog.plans.SideForm

/**
 * Reads and writes the rows of a side of a join, for each join key.
 *
 * Call for each join key: [[begin]], [[add]] for each change of the batch, and [[load]]. Then [[changes]] and
 * [[unchanged]] hold every old and new row. Finally call [[save]]. Each changed record is read once and written
 * once.
 */
private[join] abstract class JoinSideState(parts: JoinSideParts) {
  import parts.{layout, metrics, side, store, unmatched}

  /** The changed visible rows of the join key. */
  val changes: mutable.ArrayBuffer[RowChange] = new mutable.ArrayBuffer[RowChange]

  /** The number of rows before the batch, for a side with only this number in state. */
  var totalBefore: Long = 0

  /** The number of rows after the batch, for a side with only this number in state. */
  var totalAfter: Long = 0

  protected var joinKey: UnsafeRow = _

  /** Starts the next join key. */
  def begin(key: UnsafeRow): Unit = {
    joinKey = key
    changes.clear()
    clear()
  }

  /** Counts a join key with changes. */
  def countKey(): Unit = metrics.keys += 1

  protected def clear(): Unit

  /** Adds a change. The state keeps a reference to `row`. */
  def add(row: UnsafeRow, retracts: Boolean): Unit

  /** The number of rows with changes in memory. */
  def numHeld: Int

  /** Returns whether `row` is one of the rows with changes in memory. */
  def holds(row: UnsafeRow): Boolean

  /** Compares the added changes with the stored rows. */
  def load(): Unit

  /** Returns the unchanged stored rows. The caller must close the iterator and exhaust it before [[save]]. */
  def unchanged(): StoredRows

  /** Writes the changed records. */
  def save(): Unit

  private val keySchema = layout.keySchema.map(_.dataType)
  private val numJoinKeys = layout.numPrefixColumns - 1
  private val prefixColumns: Seq[Expression] = Literal(side.number.toByte) +:
    keySchema.slice(1, layout.numPrefixColumns).zipWithIndex.map { case (dataType, index) =>
      BoundReference(index, dataType, nullable = true)
    }
  private val suffixOrdinal = layout.suffixOrdinal(side)
  private val prefixProjection = UnsafeProjection.create(prefixColumns)
  private val keyProjection = UnsafeProjection.create(
    prefixColumns ++ keySchema.indices.drop(layout.numPrefixColumns).map { ordinal =>
      if (side.suffix.isDefined && ordinal == suffixOrdinal) {
        BoundReference(numJoinKeys, keySchema(ordinal), nullable = false)
      } else Literal(null, keySchema(ordinal))
    })
  private val suffix = new GenericInternalRow(1)
  private val keyRow = new JoinedRow

  private val rowOrdinal = layout.rowOrdinal(side)
  private val numSuffixColumns = side.suffix.map(_.size).getOrElse(0)
  protected final val numColumns = side.columns.size
  private val record =
    new SpecificInternalRow(Seq(side.row.getOrElse(new StructType), LongType, LongType))
  private val valueProjection =
    UnsafeProjection.create(layout.valueSchema.zipWithIndex.map { case (field, index) =>
      val ordinal = index match {
        case `rowOrdinal` if side.row.isDefined => 0
        case layout.countOrdinal if side.isCounted => 1
        case layout.matchesOrdinal if side.tracksMatches => 2
        case _ => -1
      }
      if (ordinal < 0) Literal(null, field.dataType)
      else BoundReference(ordinal, field.dataType, nullable = false)
    })

  protected def get(suffixRow: UnsafeRow): UnsafeRow = store.get(stateKey(suffixRow))

  protected def put(suffixRow: UnsafeRow, row: Any, count: Long, matches: Long): Unit = {
    record.update(0, row)
    record.setLong(1, count)
    record.setLong(2, matches)
    store.put(stateKey(suffixRow), valueProjection(record))
    metrics.updated += 1
  }

  protected def remove(suffixRow: UnsafeRow): Unit = {
    store.remove(stateKey(suffixRow))
    metrics.removed += 1
  }

  protected def rowOf(value: UnsafeRow): UnsafeRow = value.getStruct(rowOrdinal, numColumns)

  protected def rowsOf(value: UnsafeRow): ArrayData = value.getArray(rowOrdinal)

  protected def countOf(value: UnsafeRow): Long = value.getLong(layout.countOrdinal)

  protected def matchesOf(value: UnsafeRow): Long =
    if (side.tracksMatches) value.getLong(layout.matchesOrdinal) else 0

  protected def noteAdded(): Unit = metrics.added += 1

  protected def noteDropped(): Unit = metrics.dropped += 1

  protected def noteUnmatched(count: Long): Unit =
    if (count > 0) {
      unmatched(
        count,
        side.key
          .zip(joinKey.toSeq(side.key.map(_.dataType)))
          .map { case (part, value) => s"${part.sql} = $value" }
          .mkString(", "))
    }

  private def stateKey(suffixRow: UnsafeRow): UnsafeRow = {
    suffix.update(0, suffixRow)
    keyProjection(keyRow(joinKey, suffix))
  }

  /** Iterates over the records of the join key. */
  protected abstract class Scan extends StoredRows {
    private val entries = store.prefixScan(prefixProjection(joinKey))
    protected var suffixRow: UnsafeRow = _
    protected var value: UnsafeRow = _

    /** Whether the current record is a visible, unchanged row. */
    protected def isWanted: Boolean

    override def next(): Boolean = {
      var found = false
      while (!found && entries.hasNext) {
        val entry = entries.next()
        suffixRow = entry.key.getStruct(suffixOrdinal, numSuffixColumns)
        value = entry.value
        found = isWanted
      }
      found
    }

    override def matches: Long = matchesOf(value)

    override def close(): Unit = entries.close()
  }
}

private[join] object JoinSideState {
  def apply(parts: JoinSideParts): JoinSideState = parts.side.form match {
    case SideForm.OneRow => new OneRow(parts)
    case SideForm.RowByKey => new KeyedRows(parts)
    case SideForm.RowCount => new CountedRows(parts)
    case SideForm.RowList => new AppendedRows(parts)
    case SideForm.KeyCount => new RowTotal(parts)
    case SideForm.Nothing => new PassingRows(parts)
  }
}

/** The parts of a [[JoinSideState]]. */
private[join] final class JoinSideParts(
    val layout: JoinLayout,
    val side: JoinSideLayout,
    val store: StateStore,
    val unmatched: UnmatchedRetractions,
    val metrics: JoinSideMetrics)

/** Iterates over stored rows of a side. */
private[join] abstract class StoredRows {

  /** Moves to the next row. Returns false after the last row. */
  def next(): Boolean

  /** The current row, valid until [[next]]. */
  def row: UnsafeRow

  /** The number of copies of the current row, at least 1. */
  def copies: Long

  /** The number of matches stored with the current row. */
  def matches: Long

  /** Writes a new number of matches. */
  def saveMatches(matches: Long): Unit

  def close(): Unit
}

/**
 * The counters of a join side's records.
 *
 * @param updated
 *   records written
 * @param removed
 *   records removed
 * @param added
 *   new records of this side
 * @param dropped
 *   removed records of this side
 * @param keys
 *   join keys with changes of this side
 */
private[join] final case class JoinSideMetrics(
    updated: SQLMetric,
    removed: SQLMetric,
    added: SQLMetric,
    dropped: SQLMetric,
    keys: SQLMetric)

/** Stores nothing, for an insert-only side whose rows matter only in their own batch. */
private[join] final class PassingRows(parts: JoinSideParts) extends JoinSideState(parts) {
  private var counts = new LinkedHashMap[UnsafeRow, Long]

  override protected def clear(): Unit =
    // a cleared map keeps the capacity of the largest join key
    if (counts.size > 64) counts = new LinkedHashMap[UnsafeRow, Long] else counts.clear()

  override def add(row: UnsafeRow, retracts: Boolean): Unit = {
    counts.merge(row, 1L, (a, b) => a + b)
    ()
  }

  override def numHeld: Int = counts.size

  override def holds(row: UnsafeRow): Boolean = counts.containsKey(row)

  override def load(): Unit = counts.forEach { (row, count) =>
    changes += new RowChange(null, row, 0, count)
  }

  override def unchanged(): StoredRows = NoRows

  override def save(): Unit = ()

  private object NoRows extends StoredRows {
    override def next(): Boolean = false

    override def row: UnsafeRow = throw new NoSuchElementException

    override def copies: Long = throw new NoSuchElementException

    override def matches: Long = throw new NoSuchElementException

    override def saveMatches(matches: Long): Unit = throw new NoSuchElementException

    override def close(): Unit = ()
  }
}

/** Stores only the number of rows: `join key -> count`. */
private[join] final class RowTotal(parts: JoinSideParts) extends JoinSideState(parts) {
  private var countBefore = 0L
  private var delta = 0L
  private var isStored = false

  override protected def clear(): Unit = delta = 0

  override def add(row: UnsafeRow, retracts: Boolean): Unit = delta += (if (retracts) -1 else 1)

  override def numHeld: Int = 0

  override def holds(row: UnsafeRow): Boolean = true

  override def load(): Unit = {
    val value = get(null)
    isStored = value != null
    countBefore = if (isStored) countOf(value) else 0
    totalBefore = math.max(0L, countBefore)
    totalAfter = math.max(0L, countBefore + delta)
    noteUnmatched(UnmatchedRetractions.count(countBefore, countBefore + delta))
  }

  override def unchanged(): StoredRows =
    throw new UnsupportedOperationException("only the number of rows is kept")

  override def save(): Unit =
    if (delta != 0) {
      if (countBefore + delta == 0) {
        remove(null)
        noteDropped()
      } else {
        put(null, null, countBefore + delta, matches = 0)
        if (!isStored) noteAdded()
      }
    }
}
