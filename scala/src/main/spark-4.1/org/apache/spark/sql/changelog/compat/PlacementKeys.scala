// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.StructType

/** By what rows of one of Spark's own operators are shuffled, which this version does not say. */
private[compat] sealed trait PlacementKeys {
  def columns: StructType

  def of(key: UnsafeRow): UnsafeRow
}

private[compat] object PlacementKeys {

  /** Throws whatever makes that unknown. */
  def apply(
      operator: String,
      store: String,
      key: StructType,
      joinFormat: Option[Int]): PlacementKeys =
    throw new UnsupportedOperationException(s"$operator, $store")
}
