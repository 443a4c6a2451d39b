// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.state.{
  StateStore,
  StateStoreIterator,
  UnsafeRowPair
}
import org.apache.spark.sql.types.{LongType, StructField, StructType}

import org.apache.spark.sql.changelog.compat.StateStoreWrapper
import org.apache.spark.sql.changelog.microbatch.BatchTime

/**
 * How long an operator keeps an entry of its state that nothing changes.
 *
 * @param schema
 *   the operator's columns of an entry
 * @param ttls
 *   in ms, 0 for ever: of all entries, or of each kind of them, whose number the key begins with
 */
final class StateExpiry(schema: StructType, ttls: Seq[Long]) extends Serializable {
  private val columns = toAttributes(schema)
  private val changed = AttributeReference("changed at", LongType, nullable = false)()

  /** The columns of an entry in the store: the operator's, then when it was written. */
  val storedSchema: StructType =
    StructType(schema :+ StructField(changed.name, LongType, nullable = false))

  /** Where the time an entry was written stands. */
  private val changedOrdinal: Int = schema.size

  /** Adds the time to an entry. */
  def stamp(): UnsafeProjection =
    UnsafeProjection.create(columns :+ changed, columns :+ changed)

  /** Takes it off again. */
  def unstamp(): UnsafeProjection =
    UnsafeProjection.create(columns, columns :+ changed)

  /** Whether an entry is too old to be seen. */
  def isExpired(key: UnsafeRow, value: UnsafeRow, now: Long): Boolean = {
    val ttl = if (ttls.size == 1) ttls.head else ttls(key.getByte(0).toInt)
    ttl > 0 && value.getLong(changedOrdinal) + ttl <= now
  }

  /** How often the store is searched for old entries, so that they hold a tenth more at most. */
  def interval: Long = math.max(ttls.filter(_ > 0).min / 10, 1L)
}

/**
 * A state store that forgets entries nothing has changed for some time.
 *
 * An operator sees its own columns only. Old entries are invisible at once, and removed by a
 * search of the whole store now and then.
 *
 * @param time
 *   says how old an entry is: the time of batches, so that a batch that is run again sees the same
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

  /** Removes all old entries, if that is due. */
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
