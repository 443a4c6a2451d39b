// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.util.LinkedHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

import org.apache.spark.sql.changelog.RowKind

/**
 * SignedRows: a multiset of rows with signed counts, in memory. It nets the changes of a batch for a key: equal rows of
 * opposite signs cancel out.
 */
private[execution] final class SignedRows {
  private val rows = new LinkedHashMap[UnsafeRow, SignedRow]

  /** Returns the entry of a row, to change its count. The caller may overwrite `row` afterwards. */
  def apply(row: UnsafeRow): SignedRow = {
    var entry = rows.get(row)
    if (entry == null) {
      entry = new SignedRow(row.copy())
      rows.put(entry.row, entry)
    }
    entry
  }

  /** Returns the rows that did not cancel out, in the order of their first change. */
  def left: Iterator[SignedRow] = rows.values.iterator.asScala.filter(_.count != 0)

  def clear(): Unit = rows.clear()
}

/** The number of inserts minus retractions of a row, and the row kinds of both. */
private[execution] final class SignedRow(val row: UnsafeRow, var count: Long = 0) {
  var insertKind: Byte = RowKind.Insert
  var retractionKind: Byte = RowKind.Delete

  /** Adds a change. A row inserted by an after image stays one, in any order of the changes. */
  def add(kind: Byte): Unit = {
    count += RowKind.sign(kind)
    if (RowKind.retracts(kind)) retractionKind = kind
    else if (insertKind != RowKind.UpdateAfter) insertKind = kind
  }
}
