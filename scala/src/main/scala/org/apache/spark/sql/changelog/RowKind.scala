// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{ByteType, IntegerType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * RowKind: the effect of a change on the table, as a byte.
 *
 * The lowest bit marks retractions: `+I` (0) and `+U` (2) accumulate, `-U` (1) and `-D` (3) retract.
 */
object RowKind {
  val Insert: Byte = 0
  val UpdateBefore: Byte = 1
  val UpdateAfter: Byte = 2
  val Delete: Byte = 3

  /** The column with the row kind inside a plan, on edges with changes other than inserts. */
  val ColumnName = "_row_kind"

  /** The column with the change type in sources and results, with the name in Spark's own changelogs. */
  val ChangeTypeColumnName = "_change_type"

  /** `+I`, `-U`, `+U`, `-D`, indexed by kind. */
  val Symbols: IndexedSeq[String] = IndexedSeq("+I", "-U", "+U", "-D")

  /** The values of Spark's own `_change_type` column, indexed by kind. */
  val ChangeTypes: IndexedSeq[String] =
    IndexedSeq("insert", "update_preimage", "update_postimage", "delete")

  /** Returns whether a row of this kind retracts an earlier row. */
  def retracts(kind: Byte): Boolean = (kind & 1) == 1

  /** Returns +1 for kinds that accumulate, -1 for kinds that retract. */
  def sign(kind: Byte): Long = 1L - 2L * (kind & 1)

  /** Returns a new attribute for the row kind of a node's output. */
  def newAttribute(): AttributeReference =
    AttributeReference(ColumnName, ByteType, nullable = false)()

  /** Returns the column with the row kind, or None for insert-only rows. */
  def find(attributes: Seq[Attribute]): Option[Attribute] =
    attributes.find(a => a.name == ColumnName && a.dataType == ByteType)

  /** Returns the columns without the column of the row kind. */
  def without(kind: Option[Attribute], columns: Seq[Attribute]): Seq[Attribute] =
    columns.filterNot(column => kind.exists(_.exprId == column.exprId))

  /** Returns the position of the row kind in `columns`, or -1 without a row kind. */
  def ordinal(kind: Option[Attribute], columns: Seq[Attribute]): Int =
    kind.fold(-1)(kind => columns.indexWhere(_.exprId == kind.exprId))

  /** Returns the kind of a row, from the column at `ordinal`; `+I` for -1. */
  def at(row: InternalRow, ordinal: Int): Byte = if (ordinal < 0) Insert else row.getByte(ordinal)

  /** Returns a condition that is true for retractions. */
  def isRetraction(kind: Expression): Expression =
    EqualTo(BitwiseAnd(Cast(kind, IntegerType), Literal(1)), Literal(1))

  /** Returns the sign of a kind as a `BIGINT` expression: +1 or -1. */
  def signOf(kind: Expression): Expression = If(isRetraction(kind), Literal(-1L), Literal(1L))

  /** Returns the `_change_type` text for a column of kinds. */
  def changeTypeOf(kind: Expression): Expression = {
    val branches = ChangeTypes.zipWithIndex.map { case (text, index) =>
      EqualTo(kind, Literal(index.toByte)) -> Literal(UTF8String.fromString(text), StringType)
    }
    CaseWhen(branches.init, branches.last._2)
  }
}
