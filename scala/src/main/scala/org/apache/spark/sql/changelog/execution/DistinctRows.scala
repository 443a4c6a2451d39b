// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** Those of some rows that differ, each once. They may all be the same object, as an iterator gives them. */
private[execution] object DistinctRows {
  def apply(rows: Iterator[UnsafeRow]): Array[UnsafeRow] = {
    val found = mutable.LinkedHashSet.empty[UnsafeRow]
    rows.foreach(row => if (!found.contains(row)) found += row.copy())
    found.toArray
  }
}
