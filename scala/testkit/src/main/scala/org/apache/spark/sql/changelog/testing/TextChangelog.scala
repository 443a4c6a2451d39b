// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.charset.StandardCharsets.UTF_8
import java.sql.Timestamp

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.CatalystTypeConverters
import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.types._

/**
 * A change of a table.
 *
 * @param kind
 *   `+I`, `-U`, `+U` or `-D`
 * @param row
 *   the values of the table's columns
 */
final case class Change(kind: String, row: Row) {
  def isRetraction: Boolean = kind.startsWith("-")

  override def toString: String = s"$kind ${TextChangelog.format(row)}"
}

/** Reads and writes changes as text: `+I Oslo 5`. */
object TextChangelog {
  private val Kinds = Set("+I", "-U", "+U", "-D")

  /** Parses `+I Oslo 5`. Blanks separate columns, `NULL` is NULL, and `''` is an empty text. */
  def parse(text: String, schema: StructType): Change = {
    val words = text.trim.split("\\s+").toSeq
    require(Kinds.contains(words.head), s"'$text' does not begin with a row kind")
    require(words.size == schema.size + 1, s"'$text' has not the columns of ${schema.toDDL}")
    Change(
      words.head,
      Row.fromSeq(words.tail.zip(schema).map { case (word, field) =>
        value(word, field.dataType)
      }))
  }

  /** Parses a column's value, as a Spark cast does. */
  def value(word: String, dataType: DataType): Any =
    if (word == "NULL") null
    else {
      val text = if (word == "''") "" else word
      val cast = Cast(Literal(text), dataType, Some("UTC"), EvalMode.ANSI)
      CatalystTypeConverters.convertToScala(cast.eval(), dataType)
    }

  def format(row: Row): String = row.toSeq.map(format).mkString(" ")

  private def format(value: Any): String = value match {
    case null => "NULL"
    case "" => "''"
    case bytes: Array[Byte] => format(new String(bytes, UTF_8))
    case time: Timestamp => time.toLocalDateTime.toString
    case nested: Row => nested.toSeq.map(format).mkString("{", ",", "}")
    case other => other.toString
  }
}
