// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.expiry

import java.lang.ref.{ReferenceQueue, SoftReference}
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreProviderId}

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
