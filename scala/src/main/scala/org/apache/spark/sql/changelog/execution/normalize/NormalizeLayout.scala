// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.normalize

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.types.{BooleanType, StructType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.StateColumns

/**
 * Says in which columns the newest row of each key is kept, and which change of a key is the newest.
 *
 * {{{
 *   key    key columns          value  row, sequence, whether it is deleted
 * }}}
 *
 * @param key
 *   the columns that identify a row
 * @param sequence
 *   columns that order the changes of one key; empty for arrival order
 * @param position
 *   the arrival order within the batch, which settles equal sequences
 * @param columns
 *   the columns of the table
 * @param kind
 *   the row kind of a change
 * @param unavailable
 *   the names of columns whose values a change did not send; NULL for none
 * @param hasSnapshot
 *   whether rows of a snapshot come before all changes, with positions below 0
 */
final case class NormalizeLayout(
    key: Seq[Attribute],
    sequence: Seq[Attribute],
    position: Attribute,
    columns: Seq[Attribute],
    kind: Attribute,
    unavailable: Option[Attribute],
    hasSnapshot: Boolean = false) {

  def keySchema: StructType = StateColumns(key.map(column => column.name -> column.dataType))

  def valueSchema: StructType = {
    val row = columns.map(column => column.name -> column.dataType)
    val order = sequence.map(column => s"sequence.${column.name}" -> column.dataType)
    StateColumns(row ++ order :+ ("deleted" -> BooleanType))
  }

  /** The columns of a value, of which those of the row come first. */
  def stored: Seq[Attribute] = toAttributes(valueSchema)

  /** The row of a value, as an insert. */
  def storedRow: UnsafeProjection = {
    val all = stored
    UnsafeProjection.create(all.take(columns.size) :+ Literal(RowKind.Insert), all)
  }

  /** Whether the changes of a key have to come in their order, and not only the newest be found. */
  def inOrder: Boolean = unavailable.nonEmpty || hasSnapshot

  /** The order of a key's changes, the oldest first. */
  def age: Seq[SortOrder] = {
    val isBeforeImage = EqualTo(kind, Literal(RowKind.UpdateBefore))
    val ties = if (sequence.isEmpty) Nil else Seq(SortOrder(isBeforeImage, Descending))
    sequence.map(SortOrder(_, Ascending)) ++ ties :+ SortOrder(position, Ascending)
  }
}
