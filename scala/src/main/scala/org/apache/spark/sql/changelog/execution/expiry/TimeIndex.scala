// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.expiry

import java.lang.ref.{ReferenceQueue, SoftReference}
import java.util.concurrent.ConcurrentHashMap
import java.util.{HashMap, PriorityQueue, UUID}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreProviderId}

/**
 * Indexes the state keys due next, in order of time.
 *
 * {{{
 *   time       visited          horizon
 *   ───────────────┼────────────────┼─────────────▶
 *   keys       processed      all indexed   not indexed
 * }}}
 * The number of indexed keys is bounded, whatever the size of the state. Keys due after the horizon are found
 * by a scan of the state once the watermark reaches the horizon. A key may be removed or rewritten after it was
 * indexed. The caller of [[take]] therefore looks up the entry and its time again.
 *
 * @param capacity
 *   the minimum number of indexed keys, if the state has as many; the maximum is twice this number
 */
private[expiry] final class TimeIndex(capacity: Int) {
  import TimeIndex._

  private val byKey = new HashMap[UnsafeRow, Deadline]
  private val queue = new PriorityQueue[Deadline]
  private var last = EntryTimes.Never
  private var keyBytes = 0L

  /** The time up to which every due key is indexed. */
  def horizon: Long = last

  /** The time up to which every due key has been processed. */
  var visited: Long = EntryTimes.Always

  def size: Int = byKey.size

  /** The approximate memory of the index. */
  def memoryBytes: Long = keyBytes + byKey.size.toLong * BytesPerKey

  /** Indexes the time of a key. With several times for a key, the earliest counts. */
  def enter(key: UnsafeRow, time: Long): Unit =
    if (time <= last && time != EntryTimes.Never && last != EntryTimes.Always) {
      val held = byKey.get(key)
      if (held == null || time < held.time) {
        val due = new Deadline(if (held == null) key.copy() else held.key, time)
        hold(due)
        // the queue also holds outdated times of keys indexed again with an earlier time
        if (queue.size > 2 * capacity) keepFirst()
      }
    }

  /** Removes and returns the first key due at `limit`; null if no key is due. */
  def take(limit: Long): Deadline = {
    var found: Deadline = null
    while (found == null && !queue.isEmpty && queue.peek.time <= limit) {
      val due = queue.poll()
      if (byKey.get(due.key) eq due) {
        byKey.remove(due.key)
        keyBytes -= due.key.getSizeInBytes
        found = due
      }
    }
    found
  }

  private def hold(due: Deadline): Unit = {
    if (byKey.put(due.key, due) == null) keyBytes += due.key.getSizeInBytes
    queue.add(due)
  }

  /** Lowers the horizon, so that at most `capacity` keys lie before the horizon. */
  private def keepFirst(): Unit = {
    queue.clear()
    queue.addAll(byKey.values)
    if (queue.size > capacity) {
      val kept = Array.fill(capacity)(queue.poll())
      val first = queue.peek.time
      last = if (first == EntryTimes.Always) first else first - 1
      queue.clear()
      byKey.clear()
      keyBytes = 0
      if (last != EntryTimes.Always) {
        kept.iterator.takeWhile(_.time <= last).foreach(hold)
      }
    }
  }
}

private[expiry] object TimeIndex {

  /** The overhead of an indexed key, in bytes. */
  private val BytesPerKey = 150L

  /** A key and its time. */
  final class Deadline(val key: UnsafeRow, val time: Long) extends Comparable[Deadline] {
    override def compareTo(other: Deadline): Int = java.lang.Long.compare(time, other.time)
  }
}

/**
 * Caches the index of each partition's state between batches, in the executor's memory.
 *
 * A batch takes the index of exactly the state version that the batch starts from, and caches the index of the
 * version that it has written. A failed batch caches no index, and the next batch scans the state. Soft
 * references free the indexes of ended queries, and others when memory runs short.
 */
object TimeIndexes {

  /** The minimum capacity of an index. */
  private val SmallestCapacity = 10000L

  /** The maximum capacity of an index. */
  private val LargestCapacity = 500000L

  private val kept = new ConcurrentHashMap[StateStoreProviderId, IndexReference]
  private val gone = new ReferenceQueue[Content]

  private final class Content(
      val version: Long,
      val checkpointId: Option[String],
      val numEntries: Long,
      val index: Option[TimeIndex])

  private final class IndexReference(val id: StateStoreProviderId, content: Content)
      extends SoftReference[Content](content, gone)

  /** Adds a time index to a store, for one task. */
  def open(
      store: StateStore,
      times: EntryTimes,
      info: StatefulOperatorStateInfo): TimedStateStore = {
    val id = idOf(store, info.queryRunId)
    val last = Option(kept.remove(id)).flatMap(kept => Option(kept.get))
    val checkpointId = info.getStateStoreCkptId(store.id.partitionId).map(_.head)
    val index = last
      .filter(last => last.version == store.version && last.checkpointId == checkpointId)
      .flatMap(_.index)
    val capacity = (last.map(_.numEntries).getOrElse(0L) / 10).min(LargestCapacity)
    new TimedStateStore(store, times, index, capacity.max(SmallestCapacity).toInt)
  }

  /** Caches the index of a committed store. */
  def keep(store: TimedStateStore, info: StatefulOperatorStateInfo): Unit = {
    val id = idOf(store, info.queryRunId)
    val content = new Content(
      store.version + 1,
      store.getStateStoreCheckpointInfo().stateStoreCkptId,
      store.metrics.numKeys,
      store.nextIndex)
    kept.put(id, new IndexReference(id, content))
    forgetGone()
  }

  private def forgetGone(): Unit =
    Iterator.continually(gone.poll()).takeWhile(_ != null).foreach {
      case reference: IndexReference => kept.remove(reference.id, reference)
      case _ =>
    }

  private def idOf(store: StateStore, runId: UUID): StateStoreProviderId =
    StateStoreProviderId(store.id, runId)
}
