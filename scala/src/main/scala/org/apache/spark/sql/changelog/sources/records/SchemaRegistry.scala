// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import java.io.{IOException, StringWriter}
import java.math.{BigDecimal, BigInteger}
import java.net.URLEncoder
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.time.format.DateTimeFormatter.ISO_LOCAL_TIME
import java.time.temporal.ChronoUnit
import java.time.{Instant, LocalDate, LocalTime}
import java.util.Base64
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.core.{JsonFactory, JsonGenerator}
import com.fasterxml.jackson.databind.JsonNode
import org.apache.avro.Schema
import org.apache.avro.generic.{GenericData, GenericDatumReader, GenericFixed, IndexedRecord}
import org.apache.avro.io.DecoderFactory

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/**
 * SchemaRegistry: reads records in Confluent's wire format as JSON.
 *
 * {{{
 *   0x00   schema id, 4 bytes   the record, in Avro or Protobuf by this schema, or as JSON
 * }}}
 *
 * A record names the schema by which it was written, so a batch may have records of several
 * schemas. Bytes in another format are read as text. Values of logical types become texts that
 * a cast reads: a decimal has its digits, and a time is in the format of ISO 8601.
 *
 * @param url
 *   the address of a registry with Confluent's API
 * @param password
 *   `user:password`, or a token without a colon
 */
private[changelog] class SchemaRegistry(url: String, password: Option[String])
    extends Serializable {
  import SchemaRegistry._

  /** Plans show this text. */
  override def toString: String = "schema registry"

  /** Returns the text of a record, as an expression. */
  def text(record: Expression): Expression =
    Invoke(Literal.fromObject(this), "read", StringType, Seq(record))

  /**
   * Returns the text of a record. For undecodable bytes, the text has the reason and is no JSON.
   * Called from generated code.
   */
  def read(record: Array[Byte]): UTF8String =
    if (record.length <= Header || record(0) != 0) UTF8String.fromBytes(record)
    else {
      val id = ByteBuffer.wrap(record, 1, 4).getInt
      readers.computeIfAbsent((url, id), _ => fetch(id)) match {
        case None => UTF8String.fromBytes(record, Header, record.length - Header)
        case Some(reader) =>
          val text =
            try json(reader, record)
            catch {
              case NonFatal(error) =>
                val bytes = Base64.getEncoder.encodeToString(record)
                s"unreadable by schema $id ($error): $bytes"
            }
          UTF8String.fromString(text)
      }
    }

  /** Returns the reader of a schema's records, or None for JSON. */
  private def fetch(id: Int): Option[Reader] = {
    def failed(reason: String, cause: Throwable = null): Throwable = runtime(
      "CHANGELOG_SCHEMA_NOT_READ",
      cause,
      "schema" -> id,
      "registry" -> url,
      "reason" -> reason)
    val client = new RegistryClient(url, password, failed)
    def ask(path: String): JsonNode = client.get(path)
    def protobuf(path: String) = ask(s"$path?format=serialized")
    val answer = ask(s"schemas/ids/$id")
    try
      answer.path("schemaType").asText("AVRO") match {
        case "JSON" => None
        case "AVRO" => Some(avro(new Schema.Parser().parse(answer.path("schema").asText)))
        case "PROTOBUF" =>
          val file = ProtobufRecords.file("record", protobuf(s"schemas/ids/$id")) {
            (subject, version) =>
              val name = URLEncoder.encode(subject, UTF_8).replace("+", "%20")
              protobuf(s"subjects/$name/versions/$version")
          }
          Some((json, record) => ProtobufRecords.write(json, file, record, Header))
        case other => throw failed(s"its type is $other, not AVRO, PROTOBUF or JSON")
      }
    catch {
      case NonFatal(error) if !error.isInstanceOf[SparkThrowable] =>
        throw failed(error.toString, error)
    }
  }
}

private[changelog] object SchemaRegistry {

  /** Writes a record as JSON. */
  private type Reader = (JsonGenerator, Array[Byte]) => Unit

  private val Header = 5

  /** The readers of this process. A schema never changes. */
  private val readers = new ConcurrentHashMap[(String, Int), Option[Reader]]

  private val factory = new JsonFactory

  private def json(reader: Reader, record: Array[Byte]): String = {
    val text = new StringWriter
    val json = factory.createGenerator(text)
    reader(json, record)
    json.close()
    text.toString
  }

  private def avro(schema: Schema): Reader = {
    val reader = new GenericDatumReader[Any](schema)
    (json, record) => {
      val decoder =
        DecoderFactory.get.binaryDecoder(record, Header, record.length - Header, null)
      val value = reader.read(null, decoder)
      if (!decoder.isEnd) throw new IOException("bytes are left over")
      write(json, schema, value)
    }
  }

  private def write(json: JsonGenerator, schema: Schema, value: Any): Unit =
    schema.getType match {
      case Schema.Type.UNION =>
        write(json, schema.getTypes.get(GenericData.get.resolveUnion(schema, value)), value)
      case Schema.Type.RECORD =>
        json.writeStartObject()
        schema.getFields.asScala.foreach { field =>
          json.writeFieldName(field.name)
          write(json, field.schema, value.asInstanceOf[IndexedRecord].get(field.pos))
        }
        json.writeEndObject()
      case Schema.Type.MAP =>
        json.writeStartObject()
        value.asInstanceOf[java.util.Map[Any, Any]].asScala.foreach { case (name, element) =>
          json.writeFieldName(name.toString)
          write(json, schema.getValueType, element)
        }
        json.writeEndObject()
      case Schema.Type.ARRAY =>
        json.writeStartArray()
        value
          .asInstanceOf[java.util.Collection[Any]]
          .forEach(write(json, schema.getElementType, _))
        json.writeEndArray()
      case _ => writeValue(json, schema, value)
    }

  private def writeValue(json: JsonGenerator, schema: Schema, value: Any): Unit = value match {
    case null => json.writeNull()
    case flag: Boolean => json.writeBoolean(flag)
    case number: Int if typeOf(schema) == "Date" =>
      json.writeString(LocalDate.ofEpochDay(number.toLong).toString)
    case number: Int => writeNumber(json, schema, number.toLong)
    case number: Long => writeNumber(json, schema, number)
    case number: Float if !number.isNaN && !number.isInfinite => json.writeNumber(number)
    case number: Double if !number.isNaN && !number.isInfinite => json.writeNumber(number)
    case buffer: ByteBuffer =>
      val bytes = new Array[Byte](buffer.remaining)
      buffer.duplicate().get(bytes)
      writeBytes(json, schema, bytes)
    case fixed: GenericFixed => writeBytes(json, schema, fixed.bytes)
    case text => json.writeString(text.toString)
  }

  /** Writes a time as text. `infinity` has no text and stays a number. */
  private def writeNumber(json: JsonGenerator, schema: Schema, number: Long): Unit = {
    val encoding = UTF8String.fromString(typeOf(schema))
    val micros = RecordValues.micros(number, encoding)
    val nanosOfDay = RecordValues.nanosOfDay(number, encoding)
    if (micros != null) json.writeString(Instant.EPOCH.plus(micros, ChronoUnit.MICROS).toString)
    else if (nanosOfDay != null) {
      json.writeString(LocalTime.ofNanoOfDay(nanosOfDay).format(ISO_LOCAL_TIME))
    } else json.writeNumber(number)
  }

  private def writeBytes(json: JsonGenerator, schema: Schema, bytes: Array[Byte]): Unit = {
    def scale = Option(schema.getObjectProp("scale")).fold(0)(_.toString.toInt)
    // Longer ones stand for a value that was not sent.
    if (typeOf(schema) == "Decimal" && bytes.length <= LongestDecimal) {
      json.writeString(new BigDecimal(new BigInteger(bytes), scale).toPlainString)
    } else json.writeString(Base64.getEncoder.encodeToString(bytes))
  }

  private val LongestDecimal = 16

  /** Returns the last word of the name that Kafka Connect or Debezium gives a type. */
  private def typeOf(schema: Schema): String =
    Option(schema.getProp("connect.name")) match {
      case Some(name) => name.split('.').last
      case None => logicalTypes.getOrElse(schema.getProp("logicalType"), "")
    }

  private val logicalTypes = Map(
    "decimal" -> "Decimal",
    "date" -> "Date",
    "time-millis" -> "Time",
    "time-micros" -> "MicroTime",
    "timestamp-millis" -> "Timestamp",
    "timestamp-micros" -> "MicroTimestamp",
    "timestamp-nanos" -> "NanoTimestamp",
    "local-timestamp-millis" -> "Timestamp",
    "local-timestamp-micros" -> "MicroTimestamp",
    "local-timestamp-nanos" -> "NanoTimestamp")
}
