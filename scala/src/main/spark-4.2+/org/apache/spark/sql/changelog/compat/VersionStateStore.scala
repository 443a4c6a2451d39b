// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state.{
  StateStore,
  StateStoreIterator,
  UnsafeRowPair
}

/** What only this version's state stores can do. */
trait VersionStateStore extends StateStore {

  /** Refuses what is for several values. */
  protected def oneValuePerKey(): Nothing

  override def multiGet(keys: Array[UnsafeRow], family: String): Iterator[UnsafeRow] =
    keys.iterator.map(get(_, family))

  override def prefixScanWithMultiValues(
      prefix: UnsafeRow,
      family: String): StateStoreIterator[UnsafeRowPair] = oneValuePerKey()

  override def iteratorWithMultiValues(family: String): StateStoreIterator[UnsafeRowPair] =
    oneValuePerKey()

  override def allColumnFamilyNames: Set[String] = Set(StateStore.DEFAULT_COL_FAMILY_NAME)
}
