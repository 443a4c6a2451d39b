// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import java.io.{ByteArrayInputStream, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.core.JsonParser.NumberType
import com.fasterxml.jackson.core.util.JsonParserDelegate
import com.fasterxml.jackson.core.{JsonFactory, JsonParser}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.json.{JSONOptions, JacksonParser}
import org.apache.spark.sql.catalyst.util.FailureSafeParser
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Parses JSON as a struct, as `from_json` does, except that a number that is kept as text keeps its digits,
 * where `from_json` reads a DOUBLE and writes that.
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
    val jackson = new JacksonParser(columns, read, allowArrayAsStructs = false)
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
