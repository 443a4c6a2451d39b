// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._

/** A state store that keeps one value per key, and all of them in one family. */
trait SingleValueStateStore extends StateStore {

  /** Refuses what is for several values. */
  protected def oneValuePerKey(): Nothing

  override def multiGet(keys: Array[UnsafeRow], family: String): Iterator[UnsafeRow] =
    keys.iterator.map(get(_, family))

  override def valuesIterator(key: UnsafeRow, family: String): Iterator[UnsafeRow] =
    oneValuePerKey()

  override def prefixScanWithMultiValues(
      prefix: UnsafeRow,
      family: String): StateStoreIterator[UnsafeRowPair] = oneValuePerKey()

  override def iteratorWithMultiValues(family: String): StateStoreIterator[UnsafeRowPair] =
    oneValuePerKey()

  override def putList(key: UnsafeRow, values: Array[UnsafeRow], family: String): Unit =
    oneValuePerKey()

  override def merge(key: UnsafeRow, value: UnsafeRow, family: String): Unit = oneValuePerKey()

  override def mergeList(key: UnsafeRow, values: Array[UnsafeRow], family: String): Unit =
    oneValuePerKey()

  override def allColumnFamilyNames: Set[String] = Set(StateStore.DEFAULT_COL_FAMILY_NAME)
}
