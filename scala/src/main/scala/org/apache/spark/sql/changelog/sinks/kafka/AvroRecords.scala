// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.kafka

import java.io.ByteArrayOutputStream
import java.net.URLEncoder
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.avro.generic.GenericDatumWriter
import org.apache.avro.io.EncoderFactory
import org.apache.avro.{JsonProperties, Schema}

import org.apache.spark.sql.avro.{AvroSerializer, SchemaConverters}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.types.{BinaryType, StructType}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.sources.records.RegistryClient

/**
 * AvroRecords: registers the schema of records, and writes records in Confluent's wire format.
 *
 * {{{
 *   0x00   schema id, 4 bytes   the record in Avro
 * }}}
 *
 * @param url
 *   the address of a registry with Confluent's API
 * @param password
 *   `user:password`, or a token without a colon
 * @param topic
 *   the topic; the subjects are `<topic>-key` and `<topic>-value`
 */
private[kafka] class AvroRecords(url: String, password: Option[String], topic: String) {
  import AvroRecords._

  /** Returns the bytes of rows, as an expression. */
  def ofRows(row: Expression, part: String): Expression = {
    val columns = row.dataType.asInstanceOf[StructType]
    written(row, columns, record(part, columns), part)
  }

  /** Returns the bytes of Debezium's change events with the fields `before`, `after` and `op`. */
  def ofEvents(event: Expression): Expression = {
    val fields = event.dataType.asInstanceOf[StructType]
    val row = record("value", fields("after").dataType.asInstanceOf[StructType])
    def image(name: String) =
      new Schema.Field(name, optional(row), null, JsonProperties.NULL_VALUE)
    val op = new Schema.Field("op", Schema.create(Schema.Type.STRING), null, null: Object)
    val envelope = Schema.createRecord("Envelope", null, namespace, false)
    envelope.setFields(java.util.List.of(image("before"), image("after"), op))
    written(event, fields, envelope, "value")
  }

  private def written(
      row: Expression,
      columns: StructType,
      schema: Schema,
      part: String): Expression = {
    val id = register(s"$topic-$part", schema)
    Invoke(
      Literal.fromObject(new AvroWriter(columns, schema.toString, id)),
      "write",
      BinaryType,
      Seq(row))
  }

  private val namespace = topic.replaceAll("[^A-Za-z0-9_]", "_") match {
    case name if name.head.isDigit => s"_$name"
    case name => name
  }

  /** Columns that may be NULL have a default, so that a schema with further columns reads earlier records. */
  private def record(part: String, columns: StructType): Schema = {
    val schema =
      try SchemaConverters.toAvroType(columns, nullable = false, part.capitalize, namespace)
      catch { case NonFatal(error) => throw failed(s"$topic-$part")(error.getMessage, error) }
    val fields = schema.getFields.asScala.map { field =>
      val others = field.schema.isUnion && field.schema.isNullable
      if (!others) new Schema.Field(field, field.schema)
      else {
        val types = field.schema.getTypes.asScala.filter(_.getType != Schema.Type.NULL)
        val nullFirst = Schema.createUnion((Schema.create(Schema.Type.NULL) +: types).asJava)
        new Schema.Field(field.name, nullFirst, field.doc, JsonProperties.NULL_VALUE)
      }
    }
    Schema.createRecord(schema.getName, schema.getDoc, namespace, false, fields.asJava)
  }

  private def optional(schema: Schema) =
    Schema.createUnion(Schema.create(Schema.Type.NULL), schema)

  /** Returns the id of a schema. A registry gives an equal schema the same id. */
  private def register(subject: String, schema: Schema): Int =
    ids.computeIfAbsent(
      (url, subject, schema.toString),
      _ => {
        val body = new ObjectMapper().createObjectNode().put("schema", schema.toString)
        val name = URLEncoder.encode(subject, UTF_8).replace("+", "%20")
        val client = new RegistryClient(url, password, failed(subject))
        val id = client.post(s"subjects/$name/versions", body.toString).path("id")
        if (!id.isInt) throw failed(subject)("the answer has no id", null)
        id.asInt
      })

  private def failed(subject: String)(reason: String, cause: Throwable): Throwable = runtime(
    "CHANGELOG_SCHEMA_NOT_REGISTERED",
    cause,
    "subject" -> subject,
    "registry" -> url,
    "reason" -> reason)
}

private object AvroRecords {

  /** The ids of this process, by registry, subject and schema. A registered schema never changes. */
  private val ids = new ConcurrentHashMap[(String, String, String), Int]
}

/** Writes rows by one schema. Called from generated code. */
private[kafka] class AvroWriter(columns: StructType, json: String, id: Int) extends Serializable {
  @transient private lazy val schema = new Schema.Parser().parse(json)
  @transient private lazy val serializer = new AvroSerializer(columns, schema, nullable = false)
  @transient private lazy val writer = new GenericDatumWriter[Any](schema)

  def write(row: InternalRow): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    bytes.write(ByteBuffer.allocate(5).put(0.toByte).putInt(id).array)
    val encoder = EncoderFactory.get.binaryEncoder(bytes, null)
    writer.write(serializer.serialize(row), encoder)
    encoder.flush()
    bytes.toByteArray
  }
}
