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
 * The keys of a state that are due next, in order of time.
 *
 * {{{
 *   time       visited          horizon
 *   ───────────────┼────────────────┼─────────────▶
 *   keys    looked at      all here      not here
 * }}}
 * Only so many are held, whatever the size of the state: what is due after the horizon is found by
 * searching the state, once the watermark has come there. As a key may be removed or written anew
 * meanwhile, the one who takes it looks whether it is there and when it is due.
 *
 * @param capacity
 *   how many keys are held at least, if there are as many; at most it is twice that
 */
private[expiry] final class TimeIndex(capacity: Int) {
  import TimeIndex._

  private val byKey = new HashMap[UnsafeRow, Due]
  private val queue = new PriorityQueue[Due]
  private var last = EntryTimes.Never
  private var keyBytes = 0L

  /** All keys that are due up to this time are here. */
  def horizon: Long = last

  /** The time up to which all that was due has been handed out. */
  var visited: Long = EntryTimes.Always

  def size: Int = byKey.size

  /** About how much memory it takes. */
  def memoryBytes: Long = keyBytes + byKey.size.toLong * BytesPerKey

  /** Takes note of when a key is due. The first time counts, if there are several. */
  def enter(key: UnsafeRow, time: Long): Unit =
    if (time <= last && time != EntryTimes.Never && last != EntryTimes.Always) {
      val held = byKey.get(key)
      if (held == null || time < held.time) {
        val due = new Due(if (held == null) key.copy() else held.key, time)
        hold(due)
        // entries that were entered again with an earlier time count as well
        if (queue.size > 2 * capacity) keepFirst()
      }
    }

  /** Takes the first key that is due at `limit` away; null if there is none. */
  def take(limit: Long): Due = {
    var found: Due = null
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

  private def hold(due: Due): Unit = {
    if (byKey.put(due.key, due) == null) keyBytes += due.key.getSizeInBytes
    queue.add(due)
  }

  /** Draws the horizon nearer, so that no more keys than the capacity are before it. */
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

  /** A key and when it is due. */
  final class Due(val key: UnsafeRow, val time: Long) extends Comparable[Due] {
    override def compareTo(other: Due): Int = java.lang.Long.compare(time, other.time)
  }
}

/**
 * Keeps the index of each partition's state from one batch to the next, in the executor's memory.
 *
 * A batch takes the index that belongs to the very version it begins with, and leaves that of the version
 * it has written. One that fails leaves none: the next one searches the state. Where memory gets
 * scarce indexes go; so do those of queries that have ended.
 */
object TimeIndexes {

  /** How many keys are held of few entries. */
  private val SmallestCapacity = 10000L

  /** How many are held of however many. */
  private val LargestCapacity = 500000L

  private val kept = new ConcurrentHashMap[StateStoreProviderId, Kept]
  private val gone = new ReferenceQueue[Content]

  private final class Content(
      val version: Long,
      val checkpointId: Option[String],
      val numEntries: Long,
      val index: Option[TimeIndex])

  private final class Kept(val id: StateStoreProviderId, content: Content)
      extends SoftReference[Content](content, gone)

  /** Lets entries of a store be found by their times, for one task. */
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

  /** Keeps the index of a store that has been committed. */
  def keep(store: TimedStateStore, info: StatefulOperatorStateInfo): Unit = {
    val id = idOf(store, info.queryRunId)
    val content = new Content(
      store.version + 1,
      store.getStateStoreCheckpointInfo().stateStoreCkptId,
      store.metrics.numKeys,
      store.nextIndex)
    kept.put(id, new Kept(id, content))
    forgetGone()
  }

  private def forgetGone(): Unit =
    Iterator.continually(gone.poll()).takeWhile(_ != null).foreach {
      case reference: Kept => kept.remove(reference.id, reference)
      case _ =>
    }

  private def idOf(store: StateStore, runId: UUID): StateStoreProviderId =
    StateStoreProviderId(store.id, runId)
}
