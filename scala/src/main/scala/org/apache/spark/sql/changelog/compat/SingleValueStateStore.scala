// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** A state store that keeps one value per key, and all of them in one family. */
trait SingleValueStateStore extends VersionStateStore {
  override def valuesIterator(key: UnsafeRow, family: String): Iterator[UnsafeRow] =
    oneValuePerKey()

  override def putList(key: UnsafeRow, values: Array[UnsafeRow], family: String): Unit =
    oneValuePerKey()

  override def merge(key: UnsafeRow, value: UnsafeRow, family: String): Unit = oneValuePerKey()

  override def mergeList(key: UnsafeRow, values: Array[UnsafeRow], family: String): Unit =
    oneValuePerKey()
}
