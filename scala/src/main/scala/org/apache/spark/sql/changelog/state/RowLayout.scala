// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state.{
  StateStoreConf,
  StateStoreId,
  StateStoreProvider
}
import org.apache.spark.sql.types.StructType

/** What the rows of a store look like, to tell whether those in a file can be its rows. */
private[state] final class RowLayout(
    val storeId: StateStoreId,
    keySchema: StructType,
    valueSchema: StructType,
    storeConf: StateStoreConf) {
  private val smallestKey = smallest(keySchema.length)
  private val smallestValue = smallest(valueSchema.length)

  def newKey(): UnsafeRow = new UnsafeRow(keySchema.length)

  def newValue(): UnsafeRow = new UnsafeRow(valueSchema.length)

  def canBeKey(size: Int): Boolean = size >= smallestKey && size % 8 == 0

  def canBeValue(size: Int): Boolean = size >= smallestValue && size % 8 == 0

  /** Throws Spark's error if they are rows of another schema. */
  def check(key: UnsafeRow, value: UnsafeRow): Unit = StateStoreProvider.validateStateRowFormat(
    key,
    keySchema,
    value,
    valueSchema,
    storeId,
    storeConf)

  private def smallest(numColumns: Int): Int =
    UnsafeRow.calculateBitSetWidthInBytes(numColumns) + 8 * numColumns
}
