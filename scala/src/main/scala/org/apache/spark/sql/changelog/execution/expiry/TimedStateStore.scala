// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.expiry

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}
import org.apache.spark.sql.execution.streaming.state.{
  StateStore,
  StateStoreMetrics,
  UnsafeRowPair
}
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.compat.StateStoreWrapper

/**
 * A state store that finds the entries that are due without looking at all of them.
 *
 * It keeps an index of those that are due next. The state is searched, and an index begun, if there
 * is none from the batch before, as after a restart, and whenever the watermark has come to the
 * horizon of the index. Nothing of it is written, so the state's files are the same with and without.
 *
 * @param lastIndex
 *   the index after the batch before, if there is one
 * @param capacity
 *   how many entries an index that is begun holds
 */
final class TimedStateStore private[expiry] (
    store: StateStore,
    times: EntryTimes,
    lastIndex: Option[TimeIndex],
    capacity: Int)
    extends StateStoreWrapper(store) {
  private var index: TimeIndex = lastIndex.orNull
  private var isHandingOut = false

  /** The index for the next batch; none if due entries were not all processed. */
  private[expiry] def nextIndex: Option[TimeIndex] = Option(index).filterNot(_ => isHandingOut)

  /** The metrics of the store, with the memory of the index. */
  override def metrics: StateStoreMetrics = {
    val ofStore = store.metrics
    val ofIndex = nextIndex.map(_.memoryBytes).getOrElse(0L)
    ofStore.copy(memoryUsedBytes = ofStore.memoryUsedBytes + ofIndex)
  }

  override def put(key: UnsafeRow, value: UnsafeRow, family: String): Unit = {
    store.put(key, value, family)
    if (index != null) {
      val bears = !isHandingOut && times.affectsOtherDeadlines(value)
      val time = if (bears) EntryTimes.Always else times.dueAt(key, value, index.visited)
      index.enter(key, time)
    }
  }

  override def remove(key: UnsafeRow, family: String): Unit = {
    store.remove(key, family)
    if (index != null && !isHandingOut && times.affectsOtherDeadlines(null)) {
      index.enter(key, EntryTimes.Always)
    }
  }

  /**
   * The entries that have become due, which may be removed and written meanwhile. All have to be gone
   * through, and some may come twice. The value is null of what is there no more, but bears on others.
   *
   * @param limit
   *   the watermark, in microseconds
   */
  def due(limit: Long): Iterator[UnsafeRowPair] = {
    isHandingOut = true
    val before = Option(index)
    // what is written meanwhile may draw the horizon nearer
    def isAll = before.exists(limit <= _.horizon)
    val known = before.iterator.flatMap(indexed(_, limit))
    CompletionIterator[UnsafeRowPair, Iterator[UnsafeRowPair]](
      known ++ (if (isAll) Iterator.empty else searched(before, limit)), {
        index.visited = math.max(index.visited, limit)
        isHandingOut = false
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

  /** What the index doesn't know of, from a search of the state, which begins another index. */
  private def searched(before: Option[TimeIndex], limit: Long): Iterator[UnsafeRowPair] = {
    val (horizon, visited) =
      before
        .map(index => (index.horizon, index.visited))
        .getOrElse((EntryTimes.Always, EntryTimes.Always))
    val found = new TimeIndex(capacity)
    found.visited = visited
    // called once the entries of the one before have been gone through
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

  /** Takes note of when an entry is due that is not, or is due again if it stays. */
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
 * Says when an operator has to look at an entry of its state, as the watermark moves on.
 *
 * Times are in microseconds: an entry is due when the watermark has come to its time.
 */
trait EntryTimes {

  /**
   * When an entry is due; [[EntryTimes.Never]] if it never is.
   *
   * @param after
   *   up to which time the entry has been looked at: if it can be due several times, the first one
   *   after it is meant
   */
  def dueAt(key: UnsafeRow, value: UnsafeRow, after: Long): Long

  /**
   * Whether writing this entry, or removing it (`value` is null), can expire entries that were examined
   * before. Then its key is handed out with those due next, whatever its time.
   */
  def affectsOtherDeadlines(value: UnsafeRow): Boolean = false
}

object EntryTimes {
  val Never: Long = Long.MaxValue

  /** Before all times. */
  val Always: Long = Long.MinValue

  /** The times of entries whose key, of the columns `key`, holds the event time `column`. */
  def ofKey(column: Attribute, key: Seq[Attribute]): EntryTimes = {
    val timeOf = new EventTimeOf(column, key)
    (key, _, _) => timeOf(key)
  }
}

/** Reads an event time, or the end of a window of one, from a column of a row. */
final class EventTimeOf(ordinal: Int, dataType: DataType) {

  def this(column: Attribute, columns: Seq[Attribute]) =
    this(columns.map(_.exprId).indexOf(column.exprId), column.dataType)

  require(ordinal >= 0)

  private val numFields = dataType match {
    case window: StructType => window.size
    case _ => 0
  }

  /** In microseconds; never if it is NULL. */
  def apply(row: InternalRow): Long =
    if (row.isNullAt(ordinal)) EntryTimes.Never
    else if (numFields == 0) row.getLong(ordinal)
    else {
      val window = row.getStruct(ordinal, numFields)
      if (window.isNullAt(1)) EntryTimes.Never else window.getLong(1)
    }
}
