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
 * Parses JSON as a struct, as `from_json` does, except that a number that is kept as text keeps its digits,
 * where `from_json` reads a DOUBLE and writes that, and that a DECIMAL without room for a number's digits is
 * refused, where `from_json` rounds.
 *
 * @param corrupt
 *   the column of a text that is not JSON of that schema
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

  /** Called from generated code. */
  def parse(json: UTF8String): InternalRow = {
    val rows = parser.parse(json)
    if (rows.hasNext) rows.next() else null
  }

  /** The expression of Spark in its place, by which a query is known. */
  def ofSpark(json: Expression): JsonToStructs =
    JsonToStructs(schema, options, json, Some(timeZone))
}

private object RecordParser {

  /** Refuses a number with more digits after the point than a decimal has; other texts are left to Spark. */
  private def checkDigits(json: JsonParser, scale: Int): Unit = {
    // of a struct or a map, whose value comes next
    if (json.currentToken == JsonToken.FIELD_NAME) json.nextToken()
    Try(new BigDecimal(json.getText)).toOption.map(_.stripTrailingZeros).foreach { number =>
      if (number.scale > scale)
        throw new ArithmeticException(s"$number has more than $scale digits")
    }
  }

  /** A parser whose fractions are copied as decimals. */
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
 * Tells the file a record is in, where records are read from files and nothing comes in between
 * that holds rows back: then it is the file that is being read. Spark's `input_file_name()` would
 * refuse sources of several parts.
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
 * Reads the encodings of values that Spark has no expression for. All give null for what they
 * can't read. Called from generated code.
 */
object RecordValues {

  /** An instant as microseconds since the epoch. `encoding` tells the unit. */
  def micros(value: Long, encoding: UTF8String): java.lang.Long = encoding.toString match {
    case _ if value == PositiveInfinity || value == NegativeInfinity => null
    case "Timestamp" => Try(Long.box(Math.multiplyExact(value, 1000L))).getOrElse(null)
    case "MicroTimestamp" => value
    case "NanoTimestamp" => Math.floorDiv(value, 1000L)
    case _ => null
  }

  // PostgreSQL's driver writes 'infinity' and '-infinity' so
  private val PositiveInfinity = 9223372036825200000L
  private val NegativeInfinity = -9223372036832400000L

  /** A time of day as nanoseconds since midnight. `encoding` tells the unit. */
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

  /** A decimal sent as the bytes of its unscaled number, big end first, in base64. */
  def decimal(text: UTF8String, scale: Int, targetPrecision: Int, targetScale: Int): Decimal =
    Try(exact(unscaled(text, scale), targetPrecision, targetScale)).getOrElse(null)

  /** The same, of which digits are left out that the type has no room for. */
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
   * A decimal sent as text. One with digits that the type has no room for is rounded only if the `encoding`
   * is that of numbers that are not exact.
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
    // too great an exponent would take all memory
    if (shortest.scale > scale || shortest.precision - shortest.scale.toLong > precision) null
    else {
      val decimal = Decimal(shortest.setScale(scale))
      if (decimal.changePrecision(precision, scale)) decimal else null
    }
  }

  /** Bytes in one of the encodings of Debezium's `binary.handling.mode`. */
  def bytes(text: UTF8String, encoding: UTF8String): Array[Byte] = Try {
    encoding.toString match {
      case "hex" => org.apache.spark.sql.catalyst.expressions.Hex.unhex(text.getBytes)
      case "base64-url-safe" => Base64.getUrlDecoder.decode(text.getBytes)
      case "iso-8859-1" => text.toString.getBytes(java.nio.charset.StandardCharsets.ISO_8859_1)
      case _ => Base64.getDecoder.decode(text.getBytes)
    }
  }.getOrElse(null)
}
