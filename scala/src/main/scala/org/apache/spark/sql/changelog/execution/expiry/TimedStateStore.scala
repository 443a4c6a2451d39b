// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.expiry

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state.{
  StateStore, StateStoreMetrics, UnsafeRowPair
}
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.compat.StateStoreWrapper

/**
 * Wraps a state store with an index by time, so that due entries are found without a full scan.
 *
 * A scan of the state is still needed if the previous batch has left no index, such as after a restart, and
 * whenever the watermark reaches the index's horizon. The scan starts a new index. The index is not written, so
 * the state's files do not depend on it.
 *
 * @param lastIndex
 *   the index left by the previous batch
 * @param capacity
 *   the number of entries in a new index
 */
final class TimedStateStore private[expiry] (
    store: StateStore,
    times: EntryTimes,
    lastIndex: Option[TimeIndex],
    capacity: Int)
    extends StateStoreWrapper(store) {
  private var index: TimeIndex = lastIndex.orNull
  private var isIterating = false

  /** The index for the next batch; empty if not all due entries were processed. */
  private[expiry] def nextIndex: Option[TimeIndex] = Option(index).filterNot(_ => isIterating)

  /** Returns the metrics of the store, including the memory of the index. */
  override def metrics: StateStoreMetrics = {
    val ofStore = store.metrics
    val ofIndex = nextIndex.map(_.memoryBytes).getOrElse(0L)
    ofStore.copy(memoryUsedBytes = ofStore.memoryUsedBytes + ofIndex)
  }

  override def put(key: UnsafeRow, value: UnsafeRow, family: String): Unit = {
    store.put(key, value, family)
    if (index != null) {
      val affectsOthers = !isIterating && times.affectsOtherDeadlines(value)
      val time = if (affectsOthers) EntryTimes.Always else times.dueAt(key, value, index.visited)
      index.enter(key, time)
    }
  }

  override def remove(key: UnsafeRow, family: String): Unit = {
    store.remove(key, family)
    if (index != null && !isIterating && times.affectsOtherDeadlines(null)) {
      index.enter(key, EntryTimes.Always)
    }
  }

  /**
   * Returns the entries due at the watermark. The caller may remove and write entries meanwhile, and must
   * exhaust the iterator. An entry may come twice. A null value means a removed entry that affects other
   * entries' deadlines.
   *
   * @param limit
   *   the watermark, in microseconds
   */
  def due(limit: Long): Iterator[UnsafeRowPair] = {
    isIterating = true
    val before = Option(index)
    // entries written meanwhile may lower the horizon
    def isAll = before.exists(limit <= _.horizon)
    val known = before.iterator.flatMap(indexed(_, limit))
    CompletionIterator[UnsafeRowPair, Iterator[UnsafeRowPair]](
      known ++ (if (isAll) Iterator.empty else searched(before, limit)), {
        index.visited = math.max(index.visited, limit)
        isIterating = false
      })
  }

  private def indexed(index: TimeIndex, limit: Long): Iterator[UnsafeRowPair] = {
    val pair = new UnsafeRowPair
    Iterator
      .continually(index.take(limit))
      .takeWhile(_ != null)
      .filter { due =>
        val value = store.get(due.key, StateStore.DEFAULT_COL_FAMILY_NAME)
        pair.withRows(due.key, value)
        val isForOthers = due.time == EntryTimes.Always
        value == null && isForOthers || value != null && {
          val time = times.dueAt(due.key, value, index.visited)
          enterAgain(index, due.key, value, time, limit)
          time <= limit || isForOthers
        }
      }
      .map(_ => pair)
  }

  /** Scans the state for due entries beyond the old index and starts a new index. */
  private def searched(before: Option[TimeIndex], limit: Long): Iterator[UnsafeRowPair] = {
    val (horizon, visited) =
      before
        .map(index => (index.horizon, index.visited))
        .getOrElse((EntryTimes.Always, EntryTimes.Always))
    val found = new TimeIndex(capacity)
    found.visited = visited
    // called after the entries of the old index
    index = found
    val entries = store.iterator(StateStore.DEFAULT_COL_FAMILY_NAME)
    CompletionIterator[UnsafeRowPair, Iterator[UnsafeRowPair]](
      entries.filter { entry =>
        val time = times.dueAt(entry.key, entry.value, visited)
        enterAgain(found, entry.key, entry.value, time, limit)
        time <= limit && (before.isEmpty || time > horizon)
      },
      entries.close())
  }

  /** Indexes the next time of an entry: its time if not yet due, else its next time after `limit`. */
  private def enterAgain(
      index: TimeIndex,
      key: UnsafeRow,
      value: UnsafeRow,
      time: Long,
      limit: Long): Unit = {
    val next = if (time > limit) time else times.dueAt(key, value, limit)
    if (next > limit) index.enter(key, next)
  }
}

/**
 * The times at which a watermark makes entries of an operator's state due.
 *
 * Times are in microseconds. An entry is due when the watermark reaches the entry's time.
 */
trait EntryTimes {

  /**
   * Returns the time at which an entry is due; [[EntryTimes.Never]] if never.
   *
   * @param after
   *   the time up to which the entry has been processed; the next due time after it is returned
   */
  def dueAt(key: UnsafeRow, value: UnsafeRow, after: Long): Long

  /**
   * Returns whether writing this entry, or removing it (`value` is null), can expire entries already examined.
   * If so, its key is due at once, whatever its time.
   */
  def affectsOtherDeadlines(value: UnsafeRow): Boolean = false
}

object EntryTimes {
  val Never: Long = Long.MaxValue

  /** Before every time. */
  val Always: Long = Long.MinValue

  /** Returns the times of entries whose key columns `key` include the event time `column`. */
  def ofKey(column: Attribute, key: Seq[Attribute]): EntryTimes = {
    val timeOf = new EventTimeOf(column, key)
    (key, _, _) => timeOf(key)
  }
}

/** Reads an event time, or the end of a time window, from a column of a row. */
final class EventTimeOf(ordinal: Int, dataType: DataType) {

  def this(column: Attribute, columns: Seq[Attribute]) =
    this(columns.map(_.exprId).indexOf(column.exprId), column.dataType)

  require(ordinal >= 0)

  private val numFields = dataType match {
    case window: StructType => window.size
    case _ => 0
  }

  /** Returns the time in microseconds; [[EntryTimes.Never]] for NULL. */
  def apply(row: InternalRow): Long =
    if (row.isNullAt(ordinal)) EntryTimes.Never
    else if (numFields == 0) row.getLong(ordinal)
    else {
      val window = row.getStruct(ordinal, numFields)
      if (window.isNullAt(1)) EntryTimes.Never else window.getLong(1)
    }
}
