// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.expressions.variant.ParseJson
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The encoding of a column as described by a record.
 *
 * @param name
 *   the name of the encoding, such as `MicroTimestamp`, or NULL
 * @param scale
 *   the scale of a decimal, or NULL
 */
private[changelog] case class Description(name: Expression, scale: Expression)

/**
 * A column of a table, read from texts in records.
 *
 * Reading returns NULL for NULL, and for texts outside the column's type. The text distinguishes
 * the two cases.
 *
 * @param field
 *   the column, as declared by the user
 * @param encoding
 *   the encoding of values, unless the record describes it
 */
private[changelog] class RecordColumn(
    val field: StructField,
    encoding: Option[String],
    timeZone: String) {

  def name: String = field.name

  def dataType: DataType = field.dataType

  /**
   * Whether values of the column's type may be missing from an update, because the database
   * stores long values out of line.
   */
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

  /** Returns the reason why `text` is unreadable. */
  def fault(text: Expression, described: Option[Description]): Expression = {
    val plain = s", which is not of its type ${dataType.sql}"
    val what = hint match {
      case Some(hint) =>
        // Only a number has a unit; 'infinity' and '0000-00-00' have none.
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

  /** Reads a number by its encoding, and other texts by a cast. */
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
    // The user permits rounding, whatever encoding the record describes.
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

  /**
   * Reads nested values as JSON in the format of `from_json`. A fault in a part makes the whole
   * value NULL.
   */
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

  /** The number of displayed characters of a value in an error. */
  val MaxShown = 100

  /**
   * The encodings that a user can name: the last words of Debezium's schema names, and plain
   * text.
   */
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

  /**
   * Parses JSON as a struct. The column `corrupt` has the text if the JSON does not fit the
   * schema.
   */
  def parse(text: Expression, schema: StructType, timeZone: String, corrupt: String): Expression =
    RecordParser(schema, timeZone, corrupt)(text)
}
