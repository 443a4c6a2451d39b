// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** Does what another state store does, as far as operators here use one: a value per key. */
abstract class StateStoreWrapper(store: StateStore) extends SingleValueStateStore {
  override def get(key: UnsafeRow, family: String): UnsafeRow = store.get(key, family)

  override def put(key: UnsafeRow, value: UnsafeRow, family: String): Unit =
    store.put(key, value, family)

  override def remove(key: UnsafeRow, family: String): Unit = store.remove(key, family)

  override def prefixScan(prefix: UnsafeRow, family: String): StateStoreIterator[UnsafeRowPair] =
    store.prefixScan(prefix, family)

  override def iterator(family: String): StateStoreIterator[UnsafeRowPair] =
    store.iterator(family)

  override def id: StateStoreId = store.id

  override def version: Long = store.version

  override def metrics: StateStoreMetrics = store.metrics

  override def hasCommitted: Boolean = store.hasCommitted

  override def commit(): Long = store.commit()

  override def abort(): Unit = store.abort()

  override def getStateStoreCheckpointInfo(): StateStoreCheckpointInfo =
    store.getStateStoreCheckpointInfo()

  override def removeColFamilyIfExists(family: String): Boolean = unused

  override def createColFamilyIfAbsent(
      family: String,
      keySchema: StructType,
      valueSchema: StructType,
      keyEncoder: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean): Unit = unused

  override protected def oneValuePerKey(): Nothing = unused

  private def unused: Nothing =
    throw new UnsupportedOperationException("Operators with state keep one value per key")
}
