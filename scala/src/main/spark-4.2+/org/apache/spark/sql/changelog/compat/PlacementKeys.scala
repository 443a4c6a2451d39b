// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.operators.stateful.StatePartitionKeyExtractorFactory
import org.apache.spark.sql.execution.streaming.state.StatePartitionKeyExtractor
import org.apache.spark.sql.types.StructType

/** By what rows of one of Spark's own operators are shuffled, as far as the keys of its state tell. */
private[compat] final class PlacementKeys private (extractor: StatePartitionKeyExtractor) {
  def columns: StructType = extractor.partitionKeySchema

  /** What belongs to a key of the state. */
  def of(key: UnsafeRow): UnsafeRow = extractor.partitionKey(key)
}

private[compat] object PlacementKeys {

  /** Throws whatever makes that unknown. */
  def apply(
      operator: String,
      store: String,
      key: StructType,
      joinFormat: Option[Int]): PlacementKeys =
    new PlacementKeys(
      StatePartitionKeyExtractorFactory
        .create(operator, key, store, stateFormatVersion = joinFormat))
}
