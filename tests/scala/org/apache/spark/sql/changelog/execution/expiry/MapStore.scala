// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.expiry

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._

import org.apache.spark.sql.changelog.execution.StateStoreWrapper

/**
 * A store that is nothing but a map, and counts what is read of it.
 *
 * @param version
 *   the version that it goes on from
 */
private[expiry] final class MapStore(
    entries: mutable.Map[UnsafeRow, UnsafeRow],
    override val version: Long,
    partition: Int,
    checkpointId: Option[String])
    extends StateStoreWrapper(null) {
  var numRead = 0

  override def id: StateStoreId = StateStoreId("memory", 0, partition)

  override def get(key: UnsafeRow, family: String): UnsafeRow = {
    numRead += 1
    entries.getOrElse(key, null)
  }

  override def put(key: UnsafeRow, value: UnsafeRow, family: String): Unit =
    entries(key.copy()) = value.copy()

  override def remove(key: UnsafeRow, family: String): Unit = entries -= key

  override def iterator(family: String): StateStoreIterator[UnsafeRowPair] = {
    val pair = new UnsafeRowPair
    new StateStoreIterator(entries.toSeq.iterator.map { case (key, value) =>
      numRead += 1
      pair.withRows(key, value)
    })
  }

  override def metrics: StateStoreMetrics =
    StateStoreMetrics(entries.size.toLong, memoryUsedBytes = 1000, Map.empty)

  override def commit(): Long = version + 1

  override def getStateStoreCheckpointInfo(): StateStoreCheckpointInfo =
    StateStoreCheckpointInfo(partition, version + 1, checkpointId, None)
}
