// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import java.io.{ByteArrayInputStream, InputStreamReader}
import java.math.{BigDecimal, BigInteger, RoundingMode}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64
import java.util.concurrent.TimeUnit

import scala.util.Try

import com.fasterxml.jackson.core.JsonParser.NumberType
import com.fasterxml.jackson.core.util.JsonParserDelegate
import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}

import org.apache.spark.rdd.InputFileBlockHolder
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, StaticInvoke}
import org.apache.spark.sql.catalyst.json.{JSONOptions, JacksonParser}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.FailureSafeParser
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}
import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.sql.types.{DataType, Decimal, DecimalType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Parses JSON as a struct like `from_json`, with two differences:
 *
 *   - A number read as text keeps its digits. `from_json` reads a DOUBLE and formats it.
 *   - A number with too many digits for a DECIMAL is an error. `from_json` rounds.
 *
 * @param corrupt
 *   the column for a text that does not fit the schema
 */
private[changelog] case class RecordParser(
    schema: StructType,
    timeZone: String,
    corrupt: String) {
  private def options = Map("mode" -> "PERMISSIVE", "columnNameOfCorruptRecord" -> corrupt)

  private val struct: StructType = schema.asNullable

  @transient private lazy val parser = {
    val read = new JSONOptions(options, timeZone, corrupt)
    val columns = StructType(struct.filterNot(_.name == corrupt))
    val jackson = new JacksonParser(columns, read, allowArrayAsStructs = false) {
      override def makeConverter(dataType: DataType): JsonParser => AnyRef = {
        val converter = super.makeConverter(dataType)
        dataType match {
          case decimal: DecimalType =>
            json => {
              RecordParser.checkDigits(json, decimal.scale)
              converter(json)
            }
          case _ => converter
        }
      }
    }
    new FailureSafeParser[UTF8String](
      jackson.parse(_, RecordParser.exact, identity[UTF8String]),
      read.parseMode,
      struct,
      corrupt)
  }

  def apply(json: Expression): Expression =
    Invoke(Literal.fromObject(this), "parse", struct, Seq(json))

  /** Parses a text. Called from generated code. */
  def parse(json: UTF8String): InternalRow = {
    val rows = parser.parse(json)
    if (rows.hasNext) rows.next() else null
  }

  /** Returns Spark's equivalent expression, for the recorded plan. */
  def ofSpark(json: Expression): JsonToStructs =
    JsonToStructs(schema, options, json, Some(timeZone))
}

private object RecordParser {

  /**
   * Rejects a number with more fraction digits than the decimal's scale. Spark handles other
   * texts.
   */
  private def checkDigits(json: JsonParser, scale: Int): Unit = {
    // A field of a struct or map: the value is the next token.
    if (json.currentToken == JsonToken.FIELD_NAME) json.nextToken()
    Try(new BigDecimal(json.getText)).toOption.map(_.stripTrailingZeros).foreach { number =>
      if (number.scale > scale)
        throw new ArithmeticException(s"$number has more than $scale digits")
    }
  }

  /** Returns a parser that copies fractions as decimals. */
  private def exact(factory: JsonFactory, json: UTF8String): JsonParser = {
    val bytes = new ByteArrayInputStream(json.getBytes)
    new JsonParserDelegate(factory.createParser(new InputStreamReader(bytes, UTF_8))) {
      override def getNumberType: NumberType = super.getNumberType match {
        case NumberType.DOUBLE | NumberType.FLOAT => NumberType.BIG_DECIMAL
        case other => other
      }
    }
  }
}

/**
 * RecordFile: the name of a record's file. Available for file sources without nodes that hold
 * rows back, because the current file is then the record's file. Spark's `input_file_name()`
 * would fail for sources of several parts.
 */
private[changelog] object RecordFile {
  def nameIn(source: LogicalPlan): Option[Expression] =
    if (!isReadFromFiles(source)) None
    else {
      val file = StaticInvoke(
        InputFileBlockHolder.getClass,
        StringType,
        "getInputFilePath",
        returnNullable = false,
        isDeterministic = false)
      Some(file)
    }

  private def isReadFromFiles(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: Filter | _: SubqueryAlias | _: View | _: EventTimeWatermark =>
      !plan.expressions.exists(_.exists(_.isInstanceOf[PythonFuncExpression])) &&
      plan.children.forall(isReadFromFiles)
    case relation: StreamingRelation =>
      relation.dataSource.providingInstance().isInstanceOf[FileFormat]
    case relation: LogicalRelation => relation.relation.isInstanceOf[HadoopFsRelation]
    case relation: DataSourceV2Relation => relation.table.isInstanceOf[FileTable]
    case _ => false
  }
}

/**
 * RecordValues: reads encodings without an expression in Spark. All functions return null for
 * unreadable values. Called from generated code.
 */
object RecordValues {

  /** Reads an instant as microseconds since the epoch. `encoding` has the unit. */
  def micros(value: Long, encoding: UTF8String): java.lang.Long = encoding.toString match {
    case _ if value == PositiveInfinity || value == NegativeInfinity => null
    case "Timestamp" => Try(Long.box(Math.multiplyExact(value, 1000L))).getOrElse(null)
    case "MicroTimestamp" => value
    case "NanoTimestamp" => Math.floorDiv(value, 1000L)
    case _ => null
  }

  // PostgreSQL's driver writes 'infinity' and '-infinity' as these numbers.
  private val PositiveInfinity = 9223372036825200000L
  private val NegativeInfinity = -9223372036832400000L

  /** Reads a time of day as nanoseconds since midnight. `encoding` has the unit. */
  def nanosOfDay(value: Long, encoding: UTF8String): java.lang.Long = {
    val unit = encoding.toString match {
      case "Time" => TimeUnit.MILLISECONDS
      case "MicroTime" => TimeUnit.MICROSECONDS
      case "NanoTime" => TimeUnit.NANOSECONDS
      case _ => null
    }
    if (unit == null || value < 0 || value >= unit.convert(1, TimeUnit.DAYS)) null
    else unit.toNanos(value)
  }

  /** Reads a decimal from base64: the big-endian bytes of its unscaled number. */
  def decimal(text: UTF8String, scale: Int, targetPrecision: Int, targetScale: Int): Decimal =
    Try(exact(unscaled(text, scale), targetPrecision, targetScale)).getOrElse(null)

  /** Reads a decimal like [[decimal]], and rounds excess digits. */
  def roundedDecimal(
      text: UTF8String,
      scale: Int,
      targetPrecision: Int,
      targetScale: Int): Decimal =
    Try(exact(rounded(unscaled(text, scale), targetScale), targetPrecision, targetScale))
      .getOrElse(null)

  private def unscaled(text: UTF8String, scale: Int) =
    new BigDecimal(new BigInteger(Base64.getDecoder.decode(text.getBytes)), scale)

  /**
   * Reads a decimal from text. Excess digits are rounded only for an inexact `encoding`, and
   * unreadable otherwise.
   */
  def exactDecimal(
      text: UTF8String,
      encoding: UTF8String,
      targetPrecision: Int,
      targetScale: Int): Decimal = Try {
    val value = new BigDecimal(text.toString.trim)
    val kept = if (Inexact.contains(encoding.toString)) rounded(value, targetScale) else value
    exact(kept, targetPrecision, targetScale)
  }.getOrElse(null)

  private def rounded(value: BigDecimal, scale: Int): BigDecimal = {
    val isTiny = value.precision - value.scale.toLong < -scale
    if (value.scale <= scale) value
    else if (isTiny) BigDecimal.ZERO
    else value.setScale(scale, RoundingMode.HALF_UP)
  }

  private val Inexact = Set("double", "float", "float32", "float64")

  private def exact(value: BigDecimal, precision: Int, scale: Int): Decimal = {
    val shortest = value.stripTrailingZeros
    // A large exponent would exhaust memory.
    if (shortest.scale > scale || shortest.precision - shortest.scale.toLong > precision) null
    else {
      val decimal = Decimal(shortest.setScale(scale))
      if (decimal.changePrecision(precision, scale)) decimal else null
    }
  }

  /** Reads bytes in an encoding of Debezium's `binary.handling.mode`. */
  def bytes(text: UTF8String, encoding: UTF8String): Array[Byte] = Try {
    encoding.toString match {
      case "hex" => org.apache.spark.sql.catalyst.expressions.Hex.unhex(text.getBytes)
      case "base64-url-safe" => Base64.getUrlDecoder.decode(text.getBytes)
      case "iso-8859-1" => text.toString.getBytes(java.nio.charset.StandardCharsets.ISO_8859_1)
      case _ => Base64.getDecoder.decode(text.getBytes)
    }
  }.getOrElse(null)
}
