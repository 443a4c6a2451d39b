// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BoundReference, ToPrettyString}
import org.apache.spark.sql.types.{ByteType, StringType}

import org.apache.spark.sql.changelog.RowKind

/**
 * Writes rows as people do: `+I Oslo 5`.
 *
 * @param columns
 *   those of the rows; the last one may tell their kind
 * @param timeZone
 *   in which times are shown
 */
private[dryrun] class RowText(columns: Seq[Attribute], timeZone: String) {

  private val kind: Option[InternalRow => String] = columns.lastOption.map(_.dataType) match {
    case Some(ByteType) if RowKind.find(columns.takeRight(1)).isDefined =>
      Some(row => RowKind.Symbols(row.getByte(columns.size - 1).toInt))
    case _ => None
  }

  private val values = columns.zipWithIndex.map { case (column, place) =>
    place -> ToPrettyString(
      BoundReference(place, column.dataType, column.nullable),
      Some(timeZone))
  }

  /** The row with its kind, `+I` where nothing tells one. */
  def apply(row: InternalRow): String =
    kind.fold(text(RowKind.Symbols(RowKind.Insert.toInt), row, values)) { kindOf =>
      text(kindOf(row), row, values.init)
    }

  /** A row of the result, whose last column is the change type. */
  def ofResult(row: InternalRow): String = {
    val place = columns.size - 1
    val changeType = row.get(place, StringType).toString
    text(RowKind.Symbols(RowKind.ChangeTypes.indexOf(changeType)), row, values.init)
  }

  private def text(kind: String, row: InternalRow, values: Seq[(Int, ToPrettyString)]): String = {
    val words = values.map { case (place, value) =>
      if (row.isNullAt(place)) "NULL" else RowText.quoted(value.eval(row).toString)
    }
    (kind +: words).mkString(" ")
  }
}

private[dryrun] object RowText {

  /** A value as a word that [[SampleText]] reads again. */
  def quoted(text: String): String =
    if (text.isEmpty || text == "NULL" || text.startsWith("'") || text.exists(_.isWhitespace)) {
      s"'${text.replace("'", "''")}'"
    } else text
}
