// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.state.{
  StateStore, StateStoreIterator, UnsafeRowPair
}
import org.apache.spark.sql.types.{LongType, StructField, StructType}

import org.apache.spark.sql.changelog.compat.StateStoreWrapper
import org.apache.spark.sql.changelog.microbatch.BatchTime

/**
 * The TTL of an operator's state entries.
 *
 * @param schema
 *   the operator's columns of an entry
 * @param ttls
 *   in ms, 0 for ever: one TTL for all entries, or one per kind, whose number is the key's first column
 */
final class StateExpiry(schema: StructType, ttls: Seq[Long]) extends Serializable {
  private val columns = toAttributes(schema)
  private val changed = AttributeReference("changed at", LongType, nullable = false)()

  /** The columns of an entry in the store: the operator's columns, then the time of the last write. */
  val storedSchema: StructType =
    StructType(schema :+ StructField(changed.name, LongType, nullable = false))

  /** The ordinal of the time of the last write. */
  private val changedOrdinal: Int = schema.size

  /** Returns a projection that appends the time to an entry. */
  def stamp(): UnsafeProjection =
    UnsafeProjection.create(columns :+ changed, columns :+ changed)

  /** Returns a projection that removes the time from an entry. */
  def unstamp(): UnsafeProjection =
    UnsafeProjection.create(columns, columns :+ changed)

  /** Returns whether an entry is expired and so not visible. */
  def isExpired(key: UnsafeRow, value: UnsafeRow, now: Long): Boolean = {
    val ttl = if (ttls.size == 1) ttls.head else ttls(key.getByte(0).toInt)
    ttl > 0 && value.getLong(changedOrdinal) + ttl <= now
  }

  /**
   * The time between two scans for expired entries, in ms: a tenth of the shortest TTL. The store thus holds an
   * entry for at most a tenth longer.
   */
  def interval: Long = math.max(ttls.filter(_ > 0).min / 10, 1L)
}

/**
 * Wraps a state store with a TTL: entries expire that have not changed for the TTL.
 *
 * An operator sees its own columns only. Expired entries are invisible at once. A scan of the whole store
 * removes expired entries at intervals.
 *
 * @param time
 *   the times of this batch and the batch before; a rerun of the batch sees the same times
 */
final class ExpiringStateStore(
    store: StateStore,
    expiry: StateExpiry,
    time: BatchTime,
    numExpired: SQLMetric)
    extends StateStoreWrapper(store) {
  private val stamp = expiry.stamp()
  private val unstamp = expiry.unstamp()
  private val stamped = new JoinedRow
  private val now = new GenericInternalRow(Array[Any](time.timestamp))

  private def isExpired(key: UnsafeRow, value: UnsafeRow): Boolean =
    expiry.isExpired(key, value, time.timestamp)

  /** Removes all expired entries, if a scan is due. */
  def forgetExpired(): Unit =
    if (time.timestamp / expiry.interval != time.previousTimestamp / expiry.interval) {
      val entries = store.iterator(StateStore.DEFAULT_COL_FAMILY_NAME)
      try {
        entries.foreach { entry =>
          if (isExpired(entry.key, entry.value)) {
            store.remove(entry.key, StateStore.DEFAULT_COL_FAMILY_NAME)
            numExpired += 1
          }
        }
      } finally entries.close()
    }

  override def get(key: UnsafeRow, family: String): UnsafeRow = {
    val value = store.get(key, family)
    if (value == null || isExpired(key, value)) null else unstamp(value)
  }

  override def put(key: UnsafeRow, value: UnsafeRow, family: String): Unit =
    store.put(key, stamp(stamped(value, now)), family)

  override def remove(key: UnsafeRow, family: String): Unit = store.remove(key, family)

  override def prefixScan(prefix: UnsafeRow, family: String): StateStoreIterator[UnsafeRowPair] =
    current(store.prefixScan(prefix, family))

  override def iterator(family: String): StateStoreIterator[UnsafeRowPair] =
    current(store.iterator(family))

  private def current(
      entries: StateStoreIterator[UnsafeRowPair]): StateStoreIterator[UnsafeRowPair] = {
    val own = new UnsafeRowPair
    val unstamp = expiry.unstamp()
    val current = entries.filter(entry => !isExpired(entry.key, entry.value)).map { entry =>
      own.withRows(entry.key, unstamp(entry.value))
    }
    new StateStoreIterator(current, () => entries.close())
  }
}
