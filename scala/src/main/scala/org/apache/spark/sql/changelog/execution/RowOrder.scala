// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.util.{Arrays, Comparator}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

/**
 * A fixed order of rows, the same in every batch: as wanted, and equals by their columns. What is
 * left, such as zeros of either sign, is ordered by its bytes.
 */
object RowOrder {

  /** What Spark can sort by of that order. */
  def apply(order: Seq[SortOrder], columns: Seq[Attribute]): Seq[SortOrder] =
    order ++
      columns
        .filter(column => RowOrdering.isOrderable(column.dataType))
        .filterNot(column => order.exists(_.child.semanticEquals(column)))
        .map(SortOrder(_, Ascending))

  /** The whole order, given what Spark can sort by: only rows that are the same are equal. */
  def total(sorted: Comparator[InternalRow]): Comparator[UnsafeRow] = { (left, right) =>
    val compared = sorted.compare(left, right)
    if (compared != 0) compared else Arrays.compareUnsigned(left.getBytes, right.getBytes)
  }
}
