// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry.TableFunctionBuilder
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
 * `docs/sources-and-sinks.md` tells all arguments.
 */
object FromDebeziumFunction {
  val Name = "from_debezium"

  val description: (FunctionIdentifier, ExpressionInfo, TableFunctionBuilder) = (
    FunctionIdentifier(Name),
    FunctionArguments.info(Name, "Reads Debezium's change events as the table they describe"),
    build _)

  private val parameters = Seq(
    "schema",
    "key",
    "value",
    "message_key",
    "input",
    "sequence_by",
    "table",
    "metadata",
    "decimal_handling_mode",
    "time_precision_mode",
    "binary_handling_mode",
    "encodings",
    "unavailable_value",
    "on_truncate",
    "on_error")

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
    import record.{arguments, timeZone}
    val sequence = sequenceNames(record)
    val metadata = metadataNames(record)
    val sourceFields = (sequence ++ metadata).filter(_.startsWith("source.")).map(_.drop(7))
    val format = new DebeziumFormat(
      record.fields,
      record.key,
      arguments.text("table"),
      sourceFields,
      !arguments.choice("on_truncate", Seq("fail", "ignore")).contains("ignore"),
      timeZone)
    val parsed = format.parse(record.source, record.value, messageKey(record))
    def known(argument: String)(name: String) =
      record.sourceColumn(name).orElse(parsed.metadata(name)).getOrElse {
        throw arguments.invalid(
          argument,
          name,
          "a column of the source is expected, or ts_ms, op, transaction.id, source.lsn and the like")
      }
    val placeholder =
      arguments.text("unavailable_value").getOrElse("__debezium_unavailable_value")
    RecordChanges(
      record.columns(encodings(record)),
      record.key.map(_.name),
      record.input,
      sequence.map(name => name.replace('.', '_') -> known("sequence_by")(name)),
      metadata.map { name =>
        known("metadata")(name) match {
          case column: Attribute => column
          case other => Alias(other, name.replace('.', '_'))()
        }
      },
      DebeziumFormat.unavailableTexts(placeholder),
      record.drop,
      record.faults,
      record.place,
      timeZone).read(parsed.parsed)
  }

  private def messageKey(record: RecordArguments): Option[Expression] = {
    if (record.key.isEmpty && record.arguments.has("message_key")) {
      throw record.arguments.invalid(
        "message_key",
        "the key of the records",
        "it is of use only with the key of the table, as in key => array('id')")
    }
    record.messageKey
  }

  private def sequenceNames(record: RecordArguments): Seq[String] =
    if (record.input == InputMode.Retract) {
      if (record.arguments.has("sequence_by")) {
        throw record.arguments.invalid(
          "sequence_by",
          record.arguments.names("sequence_by").mkString(", "),
          "changes are ordered per key, with input => 'upsert'")
      }
      Nil
    } else if (record.arguments.has("sequence_by")) record.arguments.names("sequence_by")
    else DebeziumFormat.DefaultSequence.map("source." + _)

  private def metadataNames(record: RecordArguments): Seq[String] = {
    val names = record.arguments.names("metadata")
    if (names.nonEmpty && record.input == InputMode.Retract) {
      throw record.arguments.invalid(
        "metadata",
        names.mkString(", "),
        "an old row does not tell with which change it came; it is known with input => 'upsert'")
    }
    names
  }

  private def encodings(record: RecordArguments): StructField => Option[String] = {
    def mode[T](argument: String, modes: Map[String, T]): Option[T] =
      record.arguments.choice(argument, modes.keys.toSeq.sorted).map(modes)
    val decimal = mode("decimal_handling_mode", decimals)
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
