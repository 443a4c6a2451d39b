// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import java.math.{BigDecimal, BigInteger}
import java.time.format.DateTimeFormatter.ISO_LOCAL_TIME
import java.time.temporal.ChronoUnit
import java.time.{Instant, LocalDate, LocalTime}
import java.util.{Base64, Locale}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode
// Spark's own copy: no package is needed, and no version of an application's package is in its way
import org.sparkproject.spark_core.protobuf.DescriptorProtos.{
  DescriptorProto, FieldDescriptorProto, FileDescriptorProto
}
import org.sparkproject.spark_core.protobuf.Descriptors.FieldDescriptor.Type
import org.sparkproject.spark_core.protobuf.Descriptors.{FieldDescriptor, FileDescriptor}
import org.sparkproject.spark_core.protobuf.{Any => _, _}

/**
 * ProtobufRecords: writes records of a Protobuf schema as JSON.
 *
 * {{{
 *   path of the message in the file   the message
 * }}}
 *
 * The path has the number of a message, then the numbers of messages nested in each other. Its
 * length stands before it; length 0 means the first message. All are zigzag varints. Fields that
 * were not sent are null if their presence is known, else zero, as Protobuf defines. Times, dates
 * and decimals become texts that a cast reads.
 */
private[records] object ProtobufRecords {

  /**
   * Returns a schema's file, with the files that it imports.
   *
   * @param answer
   *   the registry's answer with the base64 of a `FileDescriptorProto`
   * @param referenced
   *   returns the answer for a version of a subject
   */
  def file(name: String, answer: JsonNode)(
      referenced: (String, Int) => JsonNode): FileDescriptor = {
    val bytes = Base64.getDecoder.decode(answer.path("schema").asText)
    val imports = answer.path("references").elements.asScala.map { reference =>
      val imported =
        referenced(reference.path("subject").asText, reference.path("version").asInt)
      file(reference.path("name").asText, imported)(referenced)
    }
    FileDescriptor.buildFrom(
      FileDescriptorProto.parseFrom(bytes).toBuilder.setName(name).build(),
      (imports ++ known).toArray)
  }

  def write(json: JsonGenerator, file: FileDescriptor, record: Array[Byte], start: Int): Unit = {
    val input = CodedInputStream.newInstance(record, start, record.length - start)
    val path = Seq.fill(input.readSInt32())(input.readSInt32())
    val first = file.getMessageTypes.get(path.headOption.getOrElse(0))
    val message = path.drop(1).foldLeft(first)(_.getNestedTypes.get(_))
    writeMessage(json, DynamicMessage.parseFrom(message, input))
  }

  private def writeMessage(json: JsonGenerator, message: Message): Unit = {
    val fields = message.getDescriptorForType.getFields.asScala
    def long(index: Int) = message.getField(fields(index)).asInstanceOf[Number].longValue
    def int(index: Int) = Math.toIntExact(long(index))
    message.getDescriptorForType.getFullName match {
      case "google.protobuf.Timestamp" =>
        val time = Instant.ofEpochSecond(long(0), long(1)).truncatedTo(ChronoUnit.MICROS)
        json.writeString(time.toString)
      case "google.type.Date" => json.writeString(LocalDate.of(int(0), int(1), int(2)).toString)
      case "google.type.TimeOfDay" =>
        json.writeString(LocalTime.of(int(0), int(1), int(2), int(3)).format(ISO_LOCAL_TIME))
      case "confluent.type.Decimal" =>
        val digits = new BigInteger(
          message.getField(fields.head).asInstanceOf[ByteString].toByteArray)
        val number = new BigDecimal(digits, int(2))
        // Zeros of a large exponent would exhaust memory.
        val isPlain = number.scale.toLong.abs <= LargestScale
        json.writeString(if (isPlain) number.toPlainString else number.toString)
      case _ if fields.headOption.exists(_.getFile == WrappersProto.getDescriptor) =>
        writeValue(json, fields.head, message.getField(fields.head))
      case _ =>
        json.writeStartObject()
        fields.foreach { field =>
          json.writeFieldName(field.getName)
          if (field.hasPresence && !message.hasField(field)) json.writeNull()
          else writeField(json, field, message.getField(field))
        }
        json.writeEndObject()
    }
  }

  private def writeField(json: JsonGenerator, field: FieldDescriptor, value: Any): Unit =
    value match {
      case entries: java.util.List[_] if field.isMapField =>
        val Seq(name, element) = field.getMessageType.getFields.asScala.toSeq
        json.writeStartObject()
        entries.asScala.collect { case entry: Message =>
          json.writeFieldName(entry.getField(name).toString)
          writeValue(json, element, entry.getField(element))
        }
        json.writeEndObject()
      case elements: java.util.List[_] =>
        json.writeStartArray()
        elements.asScala.foreach(writeValue(json, field, _))
        json.writeEndArray()
      case _ => writeValue(json, field, value)
    }

  private def writeValue(json: JsonGenerator, field: FieldDescriptor, value: Any): Unit =
    value match {
      case message: Message => writeMessage(json, message)
      case flag: Boolean => json.writeBoolean(flag)
      case number: Int if unsigned(field.getType) =>
        json.writeNumber(Integer.toUnsignedLong(number))
      case number: Long if unsigned(field.getType) =>
        json.writeNumber(java.lang.Long.toUnsignedString(number))
      case number: Number if java.lang.Double.isFinite(number.doubleValue) =>
        json.writeNumber(number.toString)
      case bytes: ByteString =>
        json.writeString(Base64.getEncoder.encodeToString(bytes.toByteArray))
      case text => json.writeString(text.toString)
    }

  private val LargestScale = 16384

  private val unsigned = Set(Type.UINT32, Type.UINT64, Type.FIXED32, Type.FIXED64)

  /** The files that a registry knows without a reference, as far as they declare types. */
  private lazy val known: Seq[FileDescriptor] = Seq(
    AnyProto.getDescriptor,
    DurationProto.getDescriptor,
    EmptyProto.getDescriptor,
    FieldMaskProto.getDescriptor,
    StructProto.getDescriptor,
    TimestampProto.getDescriptor,
    WrappersProto.getDescriptor,
    declare("google.type", "Date", Type.INT32, "year", "month", "day"),
    declare("google.type", "TimeOfDay", Type.INT32, "hours", "minutes", "seconds", "nanos"),
    declare("confluent.type", "Decimal", Type.BYTES, "value", "precision", "scale"))

  /** Returns a file with a message whose fields are numbers of 32 bits, except for the first one. */
  private def declare(
      space: String,
      message: String,
      first: Type,
      fields: String*): FileDescriptor = {
    val declared = DescriptorProto.newBuilder().setName(message)
    fields.zip(first +: Seq.fill(3)(Type.INT32)).zipWithIndex.foreach {
      case ((field, of), index) =>
        declared.addField(
          FieldDescriptorProto
            .newBuilder()
            .setName(field)
            .setNumber(index + 1)
            .setType(of.toProto))
    }
    val name = s"${space.replace('.', '/')}/${message.toLowerCase(Locale.ROOT)}.proto"
    val file =
      FileDescriptorProto.newBuilder().setSyntax("proto3").setName(name).setPackage(space)
    FileDescriptor.buildFrom(file.addMessageType(declared).build(), Array.empty)
  }
}
