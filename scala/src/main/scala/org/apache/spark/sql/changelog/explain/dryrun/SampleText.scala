// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import scala.util.Try
import scala.util.control.NonFatal

import org.json4s.JsonAST._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Attribute, BoundReference, Cast, EvalMode, JsonToStructs, Literal, ToPrettyString
}
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * A change of a sample, in text form.
 *
 * @param line
 *   the complete line
 * @param source
 *   the name of the source, if the line names one
 * @param values
 *   the text after the row kind: words, or JSON
 */
private[dryrun] final case class SampleChange(
    line: String,
    source: Option[String],
    kind: Byte,
    values: String) {
  import SampleChange._

  /** Returns the row of a source with these columns. */
  def row(columns: Seq[Attribute], timeZone: String): InternalRow = {
    val fields = columns.zip(texts(columns)).map { case (column, text) =>
      try text.fold[Any](null)(valueOf(_, column.dataType, timeZone))
      catch {
        case NonFatal(error) =>
          val reason = error.getMessage.linesIterator.next()
          throw invalid(columns, s"${column.name} is a ${column.dataType.sql}: $reason")
      }
    }
    InternalRow.fromSeq(fields)
  }

  def invalid(columns: Seq[Attribute], reason: String): Throwable =
    analysis(
      "CHANGELOG_DRY_RUN_CHANGE_INVALID",
      "line" -> line,
      "columns" -> (if (columns.isEmpty) "" else s" as a row of${listed(columns)}"),
      "reason" -> reason)

  /** Returns the text of each value, or None for NULL. */
  private def texts(columns: Seq[Attribute]): Seq[Option[String]] = asJson match {
    case Some(JObject(fields)) =>
      val unknown = fields.map(_._1).filterNot(name => columns.exists(_.name == name))
      if (unknown.nonEmpty)
        throw invalid(columns, s"there is no column ${unknown.mkString(", ")}")
      val known = fields.toMap
      columns.map(column => known.get(column.name).flatMap(text))
    case Some(JArray(items)) => ofSize(columns, items.map(text))
    case _ => ofSize(columns, SampleText.words(values))
  }

  private def asJson: Option[JValue] =
    if (!values.startsWith("{") && !values.startsWith("[")) None
    else Try(parse(values, useBigDecimalForDouble = true)).toOption

  private def ofSize(
      columns: Seq[Attribute],
      values: Seq[Option[String]]): Seq[Option[String]] = {
    if (values.size != columns.size) {
      throw invalid(columns, s"${columns.size} values are expected, not ${values.size}")
    }
    values
  }
}

private[dryrun] object SampleChange {

  /** Returns the columns with their types, in parentheses. */
  def listed(columns: Seq[Attribute]): String =
    if (columns.isEmpty) ""
    else columns.map(column => s"${column.name} ${column.dataType.sql}").mkString(" (", ", ", ")")

  private def text(value: JValue): Option[String] = value match {
    case JNull | JNothing => None
    case JString(text) => Some(text)
    case JDecimal(number) => Some(number.bigDecimal.toPlainString)
    case other => Some(compact(render(other)))
  }

  /** Arrays, maps and structs are read as JSON, other types by a cast. */
  private def valueOf(text: String, dataType: DataType, timeZone: String): Any =
    dataType match {
      case _: ArrayType | _: MapType | _: StructType =>
        val options = Map("mode" -> "FAILFAST")
        JsonToStructs(dataType, options, Literal(text), Some(timeZone)).eval()
      case _ => Cast(Literal(text), dataType, Some(timeZone), EvalMode.ANSI).eval()
    }
}

/**
 * Reads a sample from text. Each line is a change and starts a batch. A line with `&` belongs to
 * the batch of the previous line.
 *
 * {{{
 *   rides +I 1 Oslo 5
 *   & rides +I 2 'New York' NULL
 *   rides -D {"id": 1, "city": "Oslo", "fare": 5}
 * }}}
 *
 * With a single source, the name of the source is optional.
 */
private[dryrun] object SampleText {
  private val Word = """'((?:[^']|'')*)'(?=\s|$)|(\S+)""".r
  private val Line = """(?s)(&\s*)?(?:('(?:[^']|'')*'|\S+)\s+)??([-+][IUD])(?:\s+(.*))?""".r

  /** Returns the changes of each batch. */
  def apply(text: String): Seq[Seq[SampleChange]] =
    text.linesIterator
      .map(_.trim)
      .filter(line => line.nonEmpty && !line.startsWith("--"))
      .foldLeft(Vector.empty[Vector[SampleChange]]) { case (batches, line) =>
        val (together, change) = read(line)
        if (together && batches.nonEmpty) batches.init :+ (batches.last :+ change)
        else batches :+ Vector(change)
      }

  /** Returns the values of a line, or None for NULL. */
  def words(text: String): Seq[Option[String]] = Word
    .findAllMatchIn(text)
    .map { found =>
      Option(found.group(1)).map(_.replace("''", "'")).orElse {
        Some(found.group(2)).filterNot(_ == "NULL")
      }
    }
    .toSeq

  private def read(line: String): (Boolean, SampleChange) = line match {
    case Line(together, source, kind, values) =>
      val name = Option(source).flatMap(words(_).head)
      val index = RowKind.Symbols.indexOf(kind)
      if (index < 0) throw unreadable(line)
      (together != null, SampleChange(line, name, index.toByte, Option(values).getOrElse("")))
    case _ => throw unreadable(line)
  }

  private def unreadable(line: String): Throwable =
    analysis(
      "CHANGELOG_DRY_RUN_CHANGE_INVALID",
      "line" -> line,
      "columns" -> "",
      "reason" -> "a change is written as the name of a source, +I, -U, +U or -D, and the row: rides +I 1 Oslo 5")
}

/**
 * Formats rows in text form: `+I Oslo 5`.
 *
 * @param columns
 *   the columns of the rows; the last one may be the row kind
 * @param timeZone
 *   the time zone of timestamps
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

  /** Returns the row with its kind, or `+I` without a kind column. */
  def apply(row: InternalRow): String =
    kind.fold(text(RowKind.Symbols(RowKind.Insert.toInt), row, values)) { kindOf =>
      text(kindOf(row), row, values.init)
    }

  /** Returns a row of the result, whose last column is the change type. */
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

  /** Quotes a value as a word for [[SampleText]]. */
  def quoted(text: String): String =
    if (text.isEmpty || text == "NULL" || text.startsWith("'") || text.exists(_.isWhitespace)) {
      s"'${text.replace("'", "''")}'"
    } else text
}
