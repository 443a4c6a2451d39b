// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{ByteType, IntegerType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Tells what a row of a changelog does to the table it describes.
 *
 * The four bytes are chosen so that the lowest bit says whether the row takes something back:
 * `+I` (0) and `+U` (2) accumulate, `-U` (1) and `-D` (3) retract.
 */
object RowKind {
  val Insert: Byte = 0
  val UpdateBefore: Byte = 1
  val UpdateAfter: Byte = 2
  val Delete: Byte = 3

  /** Column holding the kind inside a plan, on edges that are not insert-only. */
  val ColumnName = "_row_kind"

  /** Column holding the kind at the product's edge, named as Spark's own changelogs name it. */
  val ChangeTypeColumnName = "_change_type"

  /** `+I`, `-U`, `+U`, `-D`, indexed by kind. */
  val Symbols: IndexedSeq[String] = IndexedSeq("+I", "-U", "+U", "-D")

  /** The values of Spark's own `_change_type` column, indexed by kind. */
  val ChangeTypes: IndexedSeq[String] =
    IndexedSeq("insert", "update_preimage", "update_postimage", "delete")

  /** Whether a row of this kind takes an earlier row back. */
  def retracts(kind: Byte): Boolean = (kind & 1) == 1

  /** +1 for a kind that accumulates, -1 for one that retracts. */
  def sign(kind: Byte): Long = 1L - 2L * (kind & 1)

  /** A fresh attribute for the kind of a node's output rows. */
  def newAttribute(): AttributeReference =
    AttributeReference(ColumnName, ByteType, nullable = false)()

  /** The kind column among `attributes`, present unless the rows are insert-only. */
  def find(attributes: Seq[Attribute]): Option[Attribute] =
    attributes.find(a => a.name == ColumnName && a.dataType == ByteType)

  /** The columns besides that of the kind, if there is one. */
  def without(kind: Option[Attribute], columns: Seq[Attribute]): Seq[Attribute] =
    columns.filterNot(column => kind.exists(_.exprId == column.exprId))

  /** Where the kind stands among `columns`; -1 without one. */
  def ordinal(kind: Option[Attribute], columns: Seq[Attribute]): Int =
    kind.fold(-1)(kind => columns.indexWhere(_.exprId == kind.exprId))

  /** The kind of a row that has it at `ordinal`; `+I` for -1. */
  def at(row: InternalRow, ordinal: Int): Byte = if (ordinal < 0) Insert else row.getByte(ordinal)

  /** `true` for rows whose `kind` retracts. */
  def isRetraction(kind: Expression): Expression =
    EqualTo(BitwiseAnd(Cast(kind, IntegerType), Literal(1)), Literal(1))

  /** +1 or -1 as a `BIGINT` expression, from a column of kinds. */
  def signOf(kind: Expression): Expression = If(isRetraction(kind), Literal(-1L), Literal(1L))

  /** The `_change_type` text for a column of kinds. */
  def changeTypeOf(kind: Expression): Expression = {
    val branches = ChangeTypes.zipWithIndex.map { case (text, index) =>
      EqualTo(kind, Literal(index.toByte)) -> Literal(UTF8String.fromString(text), StringType)
    }
    CaseWhen(branches.init, branches.last._2)
  }
}
