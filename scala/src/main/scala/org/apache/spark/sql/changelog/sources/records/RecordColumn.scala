// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.expressions.variant.ParseJson
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * What a record says itself about the encoding of a column.
 *
 * @param name
 *   the name of the encoding, such as `MicroTimestamp`, or NULL
 * @param scale
 *   the scale of a decimal, or NULL
 */
private[changelog] case class Description(name: Expression, scale: Expression)

/**
 * One column of a table, whose values are read from the text they have in a record.
 *
 * Reading gives NULL for NULL and for text that isn't a value of the column's type; the two are
 * told apart by the text.
 *
 * @param field
 *   the column, as the user declared it
 * @param encoding
 *   how its values are encoded, where the record doesn't say so itself
 */
private[changelog] class RecordColumn(
    val field: StructField,
    encoding: Option[String],
    timeZone: String) {

  def name: String = field.name

  def dataType: DataType = field.dataType

  /** Whether the values of this type may be left out of an update, being stored out of line. */
  def mayBeUnavailable: Boolean = dataType match {
    case _: StringType | BinaryType | _: DecimalType | VariantType => true
    case _: ArrayType | _: MapType | _: StructType => true
    case _ => false
  }

  def read(text: Expression, described: Option[Description]): Expression = {
    val known = encodingName(described)
    dataType match {
      case StringType => text
      case decimal: DecimalType => readDecimal(text, known, described, decimal)
      case BinaryType => invoke("bytes", BinaryType, text, orElse(known, "base64"))
      case DateType =>
        val days = cast(text, IntegerType)
        If(IsNotNull(days), DateFromUnixDate(days), cast(text, DateType))
      case TimestampType | TimestampNTZType => readNumber(text, "micros", known)
      case _: TimeType => readNumber(text, "nanosOfDay", known)
      case VariantType => ParseJson(text, failOnError = false)
      case _: ArrayType | _: MapType | _: StructType => readNested(text)
      case _ => cast(text, dataType)
    }
  }

  /** Why `text` could not be read. */
  def fault(text: Expression, described: Option[Description]): Expression = {
    val plain = s", which is not of its type ${dataType.sql}"
    val what = hint match {
      case Some(hint) =>
        // only a number is in a unit: 'infinity' and '0000-00-00' are not
        val mayBe = if (isTime) IsNotNull(cast(text, LongType)) else Literal(true)
        If(And(IsNull(encodingName(described)), mayBe), literal(hint), literal(plain))
      case None => literal(plain)
    }
    val shown = Left(text, Literal(RecordColumn.MaxShown))
    Concat(Seq(literal(s"column $name has the value '"), shown, literal("'"), what))
  }

  private def isTime: Boolean = !dataType.isInstanceOf[DecimalType]

  private def hint: Option[String] = dataType match {
    case _: DecimalType =>
      Some(s", a ${dataType.sql} of unknown encoding: give decimal_handling_mode")
    case TimestampType | TimestampNTZType | _: TimeType =>
      Some(s", a ${dataType.sql} in an unknown unit: give time_precision_mode or encodings")
    case _ => None
  }

  private def encodingName(described: Option[Description]): Expression = {
    val fallback = Literal(encoding.map(UTF8String.fromString).orNull, StringType)
    described.map(known => Coalesce(Seq(known.name, fallback))).getOrElse(fallback)
  }

  /** A number says its encoding or has none; text that isn't a number speaks for itself. */
  private def readNumber(text: Expression, reader: String, known: Expression): Expression = {
    val number = cast(text, LongType)
    If(IsNotNull(number), invoke(reader, dataType, number, known), cast(text, dataType))
  }

  private def readDecimal(
      text: Expression,
      known: Expression,
      described: Option[Description],
      target: DecimalType): Expression = {
    val declared = Literal(target.scale)
    val scale =
      described.map(d => Coalesce(Seq(cast(d.scale, IntegerType), declared))).getOrElse(declared)
    // the user's word to let digits go, whatever a record says of its encoding
    val rounds = encoding.contains("double")
    val (ofBytes, ofText) =
      if (rounds) ("roundedDecimal", literal("double")) else ("decimal", known)
    def unscaled(base64: Expression, scale: Expression) =
      invoke(ofBytes, target, base64, scale, Literal(target.precision), Literal(target.scale))
    def part(name: String) = GetJsonObject(text, literal(s"$$.$name"))
    CaseWhen(
      Seq(
        StartsWith(text, literal("{")) ->
          unscaled(part("value"), cast(part("scale"), IntegerType)),
        EqualTo(known, literal("Decimal")) -> unscaled(text, scale),
        IsNotNull(known) -> invoke(
          "exactDecimal",
          target,
          text,
          ofText,
          Literal(target.precision),
          Literal(target.scale))),
      Literal(null, target))
  }

  /** Nested values are JSON, in the form that `from_json` reads. A fault anywhere makes it NULL. */
  private def readNested(text: Expression): Expression = {
    val corrupt = StructField("_corrupt", StringType)
    val schema = StructType(Seq(StructField("value", dataType.asNullable), corrupt))
    val wrapped = Concat(Seq(literal("{\"value\":"), text, literal("}")))
    val parsed = RecordColumn.parse(wrapped, schema, timeZone, corrupt.name)
    If(
      IsNull(GetStructField(parsed, 1)),
      GetStructField(parsed, 0),
      Literal(null, dataType.asNullable))
  }

  private def orElse(known: Expression, encoding: String): Expression =
    Coalesce(Seq(known, literal(encoding)))

  private def invoke(function: String, result: DataType, arguments: Expression*): Expression =
    StaticInvoke(RecordValues.getClass, result, function, arguments)

  private def cast(value: Expression, target: DataType): Expression =
    Cast(value, target, Some(timeZone), EvalMode.TRY)

  private def literal(text: String): Expression = Literal(UTF8String.fromString(text), StringType)
}

private[changelog] object RecordColumn {

  /** How much of a value an error shows. */
  val MaxShown = 100

  /** The encodings a user can name: the last words of Debezium's schema names, and plain text. */
  val Encodings: Seq[String] = Seq(
    "Date",
    "Timestamp",
    "MicroTimestamp",
    "NanoTimestamp",
    "Time",
    "MicroTime",
    "NanoTime",
    "Decimal",
    "double",
    "string",
    "base64",
    "base64-url-safe",
    "hex")

  /** JSON as a struct; what doesn't fit its type is kept as text in the column `corrupt`. */
  def parse(text: Expression, schema: StructType, timeZone: String, corrupt: String): Expression =
    RecordParser(schema, timeZone, corrupt)(text)
}
