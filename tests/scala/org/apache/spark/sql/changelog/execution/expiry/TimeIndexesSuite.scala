// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.expiry

import java.util.UUID

import scala.collection.mutable

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.types.{DataType, IntegerType}

import org.apache.spark.sql.changelog.testing.MapStore

/** From one batch to the next an index is kept for just the version it belongs to. */
class TimeIndexesSuite extends AnyFunSuite {
  private val toRow = UnsafeProjection.create(Array[DataType](IntegerType))

  private def row(number: Int): UnsafeRow = toRow(InternalRow(number)).copy()

  /** An entry is due at the time that is its value. */
  private val byValue: EntryTimes = (_, value, _) => value.getInt(0).toLong

  /** One partition's state in a run of a query. */
  private final class State(
      runId: UUID = UUID.randomUUID(),
      partition: Int = 0,
      numEntries: Int = 100) {
    private val entries = mutable.Map.empty[UnsafeRow, UnsafeRow]
    (1 to numEntries).foreach(number => entries(row(number)) = row(number))
    private var last: MapStore = _
    private var timed: TimedStateStore = _

    /** Begins a batch with a version. */
    def begin(version: Long, checkpointId: Option[String] = None): TimedStateStore = {
      last = new MapStore(entries, version, partition, Some(s"id of ${version + 1}"))
      timed = TimeIndexes.open(last, byValue, info(version, checkpointId))
      timed
    }

    /** What has become due is removed; gives how many entries were read to find it. */
    def take(limit: Int): Int = {
      val found = timed.due(limit.toLong).map(_.key.copy()).toSeq
      assert(found.map(_.getInt(0)).forall(_ <= limit))
      found.foreach(timed.remove(_))
      assert(!entries.values.exists(_.getInt(0) <= limit), "nothing that is due is left")
      last.numRead
    }

    def commit(): Unit = {
      timed.commit()
      TimeIndexes.keep(timed, info(last.version, None))
    }

    private def info(version: Long, checkpointId: Option[String]): StatefulOperatorStateInfo =
      StatefulOperatorStateInfo(
        "memory",
        runId,
        0,
        version,
        2,
        stateStoreCkptIds = checkpointId.map(id => Array.fill(2)(Array(id))))
  }

  /** A state whose first batch has begun an index. */
  private def begun(runId: UUID = UUID.randomUUID(), partition: Int = 0): State = {
    val state = new State(runId, partition)
    state.begin(0)
    assert(state.take(10) == 100)
    state.commit()
    state
  }

  test("the next batch finds what is due in the index of the batch before") {
    val state = new State()
    state.begin(0)
    assert(state.take(10) == 100)
    state.commit()
    state.begin(1, Some("id of 1"))
    assert(state.take(15) == 5)
    state.commit()
    state.begin(2, Some("id of 2"))
    assert(state.take(17) == 2)
  }

  test("a batch that is not committed leaves no index, and the next one searches") {
    val state = begun()
    state.begin(1, Some("id of 1"))
    state.begin(1, Some("id of 1"))
    assert(state.take(20) == 90)
  }

  test("an index of another version is not used") {
    val state = begun()
    state.begin(0)
    assert(state.take(20) == 90)
    state.commit()
    state.begin(2, Some("id of 2"))
    assert(state.take(30) == 80)
  }

  test("an index of another attempt's state of the same version is not used") {
    val state = begun()
    state.begin(1, Some("id of another attempt"))
    assert(state.take(20) == 90)
  }

  test("runs of a query and partitions have indexes of their own") {
    val runId = UUID.randomUUID()
    begun(runId)
    val inOtherPartition = new State(runId, partition = 1)
    inOtherPartition.begin(1, Some("id of 1"))
    assert(inOtherPartition.take(10) == 100)
    val inOtherRun = new State()
    inOtherRun.begin(1, Some("id of 1"))
    assert(inOtherRun.take(10) == 100)
  }

  test("an index whose entries have not all been gone through is not kept") {
    val state = begun()
    val store = state.begin(1, Some("id of 1"))
    assert(store.due(20).hasNext)
    state.commit()
    state.begin(2, Some("id of 2"))
    assert(state.take(20) == 90)
  }

  test("the index is counted as memory of the store") {
    val state = new State()
    val store = state.begin(0)
    assert(store.metrics.memoryUsedBytes == 1000)
    state.take(10)
    val ofKey = row(1).getSizeInBytes + 150
    assert(store.metrics.memoryUsedBytes == 1000 + 90 * ofKey)
    state.take(40)
    assert(store.metrics.memoryUsedBytes == 1000 + 60 * ofKey)
    assert(store.metrics.numKeys == 60)
    // an earlier time replaces a later one
    store.put(row(100), row(50))
    assert(store.metrics.memoryUsedBytes == 1000 + 60 * ofKey)
  }

  test("the memory of keys that are no longer held is not counted") {
    val index = new TimeIndex(capacity = 5)
    (1 to 100).foreach(number => index.enter(row(number), number.toLong))
    assert(index.size <= 10)
    assert(index.memoryBytes == index.size * (row(1).getSizeInBytes + 150))
    while (index.take(Long.MaxValue - 1) != null) {}
    assert(index.memoryBytes == 0)
  }
}
