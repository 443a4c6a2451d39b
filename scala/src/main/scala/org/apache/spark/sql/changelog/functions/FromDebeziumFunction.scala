// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.plans.InputMode
import org.apache.spark.sql.changelog.sources.records._

/**
 * The SQL table function `from_debezium`: Debezium's change events, read as a table.
 *
 * {{{
 *   from_debezium(TABLE(source), schema [, key] [, value] [, input] [, sequence_by] ...)
 * }}}
 *
 * `docs/sources-and-sinks.md` describes all arguments.
 */
object FromDebeziumFunction {
  val Name = "from_debezium"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(Name, "Reads Debezium's change events as the table they describe")(
      build)

  private val parameters = Seq(
    "message_key",
    RecordArguments.Registry,
    "input",
    "sequence_by",
    "table",
    "metadata",
    "decimal_handling_mode",
    "time_precision_mode",
    "binary_handling_mode",
    "encodings",
    "unavailable_value",
    "on_truncate")

  private val decimals = Map("precise" -> "Decimal", "string" -> "string", "double" -> "double")

  private val binaries = Map(
    "bytes" -> "base64",
    "base64" -> "base64",
    "base64-url-safe" -> "base64-url-safe",
    "hex" -> "hex")

  private val instants = Map(
    "adaptive" -> None,
    "adaptive_time_microseconds" -> None,
    "connect" -> Some("Timestamp"),
    "microseconds" -> Some("MicroTimestamp"),
    "nanoseconds" -> Some("NanoTimestamp"),
    "isostring" -> None)

  private val timesOfDay = Map(
    "adaptive" -> None,
    "adaptive_time_microseconds" -> Some("MicroTime"),
    "connect" -> Some("Time"),
    "microseconds" -> Some("MicroTime"),
    "nanoseconds" -> Some("NanoTime"),
    "isostring" -> None)

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    val record = new RecordArguments(Name, parameters, expressions)
    val sequence = record.sequenceNames(DebeziumFormat.DefaultSequence.map("source." + _))
    val named = (sequence ++ record.metadataNames).filter(_.startsWith("source."))
    val format = new DebeziumFormat(
      record.fields,
      record.key,
      record.arguments.text("table"),
      named.map(_.stripPrefix("source.")),
      record.timeZone)
    val debezium = format.parse(record.source, record.value, messageKey(record))
    val placeholder =
      record.arguments.text("unavailable_value").getOrElse("__debezium_unavailable_value")
    record
      .changes(sequence, encodings(record), DebeziumFormat.unavailableTexts(placeholder)) {
        name =>
          debezium.metadata(name)
      }
      .read(debezium.parsed)
  }

  private def messageKey(record: RecordArguments): Option[Expression] = {
    if (record.key.isEmpty && record.arguments.has("message_key")) {
      throw record.arguments.invalid(
        "message_key",
        "the key of the records",
        "message_key requires the key of the table, as in key => array('id')")
    }
    record.messageKey
  }

  private def encodings(record: RecordArguments): StructField => Option[String] = {
    def mode[T](argument: String, modes: Map[String, T]): Option[T] =
      record.arguments.choice(argument, modes.keys.toSeq.sorted).map(modes)
    val ofEvents = mode("decimal_handling_mode", decimals)
    // Decoded decimals are texts.
    val decimal =
      if (record.hasRegistry) ofEvents.filter(_ == "double").orElse(Some("string"))
      else ofEvents
    val binary = mode("binary_handling_mode", binaries)
    val instant = mode("time_precision_mode", instants).flatten
    val timeOfDay = mode("time_precision_mode", timesOfDay).flatten
    field =>
      record.encodings
        .get(field.name)
        .orElse(field.dataType match {
          case _: DecimalType => decimal
          case BinaryType => binary
          case TimestampType | TimestampNTZType => instant
          case _: TimeType => timeOfDay
          case _ => None
        })
  }
}

/**
 * A SQL table function over flat JSON records, read as a table.
 *
 * {{{
 *   from_canal(TABLE(source), schema [, key] [, value] [, input] [, sequence_by] ...)
 * }}}
 *
 * `docs/sources-and-sinks.md` describes all arguments.
 */
private[changelog] sealed abstract class FlatFunction(
    name: String,
    dialect: FlatDialect,
    binary: Option[String] = None) {

  val description: FunctionArguments.Description = FunctionArguments.describe(
    name,
    s"Reads ${dialect.tool}'s messages as the table they describe")(build)

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    val record = new RecordArguments(name, FlatFunction.parameters, expressions)
    val sequence = record.sequenceNames(dialect.sequence)
    val oldColumns = if (record.input == InputMode.Upsert) record.key else record.fields
    val format = new FlatFormat(
      dialect,
      record.arguments.text("table"),
      sequence,
      oldColumns.map(_.name),
      record.timeZone)
    val flat = format.parse(record.source, record.value)
    val unavailable = if (dialect.isPartial) Seq(FlatFormat.NotSent) else Nil
    val encodings = record.encoding {
      case _: DecimalType => "string"
      case BinaryType if binary.isDefined => binary.get
    }
    record
      .changes(sequence, encodings, unavailable)(flat.metadata)
      .copy(isAnyUnavailable = dialect.isPartial)
      .read(flat.parsed)
  }
}

private object FlatFunction {
  private val parameters =
    Seq("input", "sequence_by", "table", "metadata", "encodings", "on_truncate")
}

/** `from_canal`: Canal writes every value as text, and binary values with one character per byte. */
object FromCanalFunction
    extends FlatFunction("from_canal", FlatDialect.Canal, binary = Some("iso-8859-1"))

/** `from_maxwell`: messages of Maxwell's daemon. */
object FromMaxwellFunction extends FlatFunction("from_maxwell", FlatDialect.Maxwell)

/** `from_goldengate`: messages of Oracle GoldenGate's JSON formatter. */
object FromGoldenGateFunction extends FlatFunction("from_goldengate", FlatDialect.GoldenGate)

/**
 * The SQL table function `from_upsert_kafka`: a compacted topic, read as a table.
 *
 * {{{
 *   from_upsert_kafka(TABLE(topic), schema, key [, value] [, message_key] [, sequence_by] ...)
 * }}}
 *
 * `docs/sources-and-sinks.md` describes all arguments.
 */
object FromUpsertKafkaFunction {
  val Name = "from_upsert_kafka"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(Name, "Reads a compacted topic as the table it holds")(build)

  private val parameters =
    Seq("message_key", RecordArguments.Registry, "sequence_by", "metadata", "encodings")

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    val record = new RecordArguments(Name, parameters, expressions, keyColumn = Some("key"))
    if (record.key.isEmpty) {
      throw record.arguments.invalid(
        "key",
        "NULL",
        "the columns that identify a row are expected, as in key => 'id'")
    }
    val format = new UpsertFormat(record.fields, record.key.map(_.name), record.timeZone)
    record
      .changes(
        record.sequenceNames(Nil),
        record.encoding { case _: DecimalType => "string" },
        Nil)(_ => None)
      .read(format.parse(record.source, record.value, record.messageKey.get))
  }
}
