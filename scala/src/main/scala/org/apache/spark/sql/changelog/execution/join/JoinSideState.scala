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
 * The rows of one side of a join, one join key after the other.
 *
 * For each join key: [[begin]], [[add]] for each change of the batch, [[load]]; then [[changes]]
 * and [[unchanged]] hold all rows there were and are; at last [[save]]. Each record that changes is
 * read once and written once.
 */
private[join] abstract class JoinSideState(
    layout: JoinLayout,
    side: JoinSideLayout,
    store: StateStore,
    unmatched: UnmatchedRetractions,
    metrics: JoinSideMetrics) {

  /** What the batch does to rows of the join key, as far as it can be seen from outside. */
  val changes: mutable.ArrayBuffer[RowChange] = new mutable.ArrayBuffer[RowChange]

  /** The number of rows before the batch; only of a side of which nothing else is kept. */
  var totalBefore: Long = 0

  /** The number of rows after the batch; only of a side of which nothing else is kept. */
  var totalAfter: Long = 0

  protected var joinKey: UnsafeRow = _

  /** Goes to another join key. */
  def begin(key: UnsafeRow): Unit = {
    joinKey = key
    changes.clear()
    clear()
  }

  /** Takes note of a join key that has changes. */
  def countKey(): Unit = metrics.keys += 1

  protected def clear(): Unit

  /** Takes note of a change; `row` is kept. */
  def add(row: UnsafeRow, retracts: Boolean): Unit

  /** How many rows have been added to. */
  def numHeld: Int

  /** Whether a change is of one of them. */
  def holds(row: UnsafeRow): Boolean

  /** Compares all changes with the stored rows. */
  def load(): Unit

  /** The stored rows that do not change. To be closed, and gone through before [[save]]. */
  def unchanged(): StoredRows

  /** Writes what changed. */
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

  /** Goes through the records of the join key. */
  protected abstract class Scan extends StoredRows {
    private val entries = store.prefixScan(prefixProjection(joinKey))
    protected var suffixRow: UnsafeRow = _
    protected var value: UnsafeRow = _

    /** Whether the record at hand is of a row that is there and does not change. */
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
  def apply(
      layout: JoinLayout,
      side: JoinSideLayout,
      store: StateStore,
      unmatched: UnmatchedRetractions,
      metrics: JoinSideMetrics): JoinSideState = side.form match {
    case SideForm.OneRow => new OneRow(layout, side, store, unmatched, metrics)
    case SideForm.RowByKey => new KeyedRows(layout, side, store, unmatched, metrics)
    case SideForm.RowCount => new CountedRows(layout, side, store, unmatched, metrics)
    case SideForm.RowList => new AppendedRows(layout, side, store, unmatched, metrics)
    case SideForm.KeyCount => new RowTotal(layout, side, store, unmatched, metrics)
    case SideForm.Nothing => new PassingRows(layout, side, store, unmatched, metrics)
  }
}

/** Goes through rows of one side: [[next]], then the others. */
private[join] abstract class StoredRows {

  /** Goes to the next row; false if there is none. */
  def next(): Boolean

  /** The row, valid until [[next]]. */
  def row: UnsafeRow

  /** How often it is there; more than 0. */
  def copies: Long

  /** How many rows of the other side it matched when it was last written. */
  def matches: Long

  /** Writes another number of matches. */
  def saveMatches(matches: Long): Unit

  def close(): Unit
}

/**
 * Counts what happens to the records of one side of a join.
 *
 * @param updated
 *   records written
 * @param removed
 *   records removed
 * @param added
 *   records of this side that were not there before
 * @param dropped
 *   records of this side that are gone
 * @param keys
 *   join keys of which rows of this side come or go
 */
private[join] final case class JoinSideMetrics(
    updated: SQLMetric,
    removed: SQLMetric,
    added: SQLMetric,
    dropped: SQLMetric,
    keys: SQLMetric)

/** Rows that only come, and are of no interest after their batch: nothing is kept. */
private[join] final class PassingRows(
    layout: JoinLayout,
    side: JoinSideLayout,
    store: StateStore,
    unmatched: UnmatchedRetractions,
    metrics: JoinSideMetrics)
    extends JoinSideState(layout, side, store, unmatched, metrics) {
  private var counts = new LinkedHashMap[UnsafeRow, Long]

  override protected def clear(): Unit =
    // a cleared map stays as large as it was for the largest key
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

/** No rows, only how many there are: `join key -> count`. */
private[join] final class RowTotal(
    layout: JoinLayout,
    side: JoinSideLayout,
    store: StateStore,
    unmatched: UnmatchedRetractions,
    metrics: JoinSideMetrics)
    extends JoinSideState(layout, side, store, unmatched, metrics) {
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
