// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._

import org.apache.spark.sql.changelog.compat.StateStoreWrapper

/**
 * A store that is nothing but a map, and counts what is read of it and written to it.
 *
 * @param version
 *   the version that it goes on from
 * @param prefixOf
 *   gives what keys are scanned by
 */
private[changelog] final class MapStore(
    entries: mutable.Map[UnsafeRow, UnsafeRow] = mutable.LinkedHashMap.empty,
    override val version: Long = 0,
    partition: Int = 0,
    checkpointId: Option[String] = None,
    prefixOf: UnsafeRow => UnsafeRow = identity)
    extends StateStoreWrapper(null) {
  var numRead = 0
  var numWritten = 0

  def size: Int = entries.size

  override def id: StateStoreId = StateStoreId("memory", 0, partition)

  override def get(key: UnsafeRow, family: String): UnsafeRow = {
    numRead += 1
    entries.getOrElse(key, null)
  }

  override def put(key: UnsafeRow, value: UnsafeRow, family: String): Unit = {
    numWritten += 1
    entries(key.copy()) = value.copy()
  }

  override def remove(key: UnsafeRow, family: String): Unit = {
    numWritten += 1
    entries -= key
  }

  override def iterator(family: String): StateStoreIterator[UnsafeRowPair] =
    pairs(entries.toSeq)

  override def prefixScan(prefix: UnsafeRow, family: String): StateStoreIterator[UnsafeRowPair] =
    pairs(entries.toSeq.filter { case (key, _) => prefixOf(key) == prefix })

  private def pairs(found: Seq[(UnsafeRow, UnsafeRow)]): StateStoreIterator[UnsafeRowPair] = {
    val pair = new UnsafeRowPair
    new StateStoreIterator(found.iterator.map { case (key, value) =>
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
