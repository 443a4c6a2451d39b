// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.normalize

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.errors.ChangelogErrors

/**
 * Follows one key's row through its changes, and gives each change the values that it did not send
 * because they did not change.
 *
 * @param names
 *   the column with the names of what was not sent
 * @param input
 *   the columns of a change
 */
private[normalize] class UnsentValues(
    key: Seq[Attribute],
    columns: Seq[Attribute],
    names: Attribute,
    input: Seq[Attribute]) {

  private val namesOrdinal = input.indexWhere(_.exprId == names.exprId)
  private val inputOrdinals =
    columns.map(column => input.indexWhere(_.exprId == column.exprId)).toArray
  private val ordinals: Map[String, Int] = columns.map(_.name).zipWithIndex.toMap
  private val types = input.map(_.dataType)
  private val storedOrdinals = columns.indices.toArray

  /** The row so far, null if there is none, and where its columns are. */
  private var row: InternalRow = _
  private var rowOrdinals: Array[Int] = storedOrdinals

  /** Starts with the stored row; null if there is none. */
  def begin(stored: InternalRow): Unit = keep(stored, storedOrdinals)

  /** The row is gone with this change. */
  def removed(change: InternalRow): InternalRow = {
    keep(null, storedOrdinals)
    change
  }

  /** The change in full, as far as the row before is known. */
  def complete(change: InternalRow): InternalRow = {
    val missing = missingColumns(change)
    if (missing.isEmpty) {
      keep(change, inputOrdinals)
      change
    } else if (row == null) change
    else {
      val values = change.toSeq(types).toArray
      missing.foreach { ordinal =>
        values(inputOrdinals(ordinal)) = row.get(rowOrdinals(ordinal), columns(ordinal).dataType)
      }
      values(namesOrdinal) = null
      val completed = new GenericInternalRow(values)
      keep(completed, inputOrdinals)
      completed
    }
  }

  private def keep(newest: InternalRow, ordinals: Array[Int]): Unit = {
    row = newest
    rowOrdinals = ordinals
  }

  /** Fails for a change that could not be completed. */
  def check(change: InternalRow): Unit = missingColumns(change).headOption.foreach { ordinal =>
    val values = key.map(column => input.indexWhere(_.exprId == column.exprId)).map { at =>
      String.valueOf(change.get(at, types(at)))
    }
    throw ChangelogErrors.valueUnavailable(values.mkString(", "), columns(ordinal).name)
  }

  /** What was not sent of the columns that are kept at all. */
  private def missingColumns(change: InternalRow): Seq[Int] =
    if (change.isNullAt(namesOrdinal)) Nil
    else {
      change
        .getArray(namesOrdinal)
        .toArray[UTF8String](StringType)
        .toSeq
        .filter(_ != null)
        .flatMap(name => ordinals.get(name.toString))
    }
}
