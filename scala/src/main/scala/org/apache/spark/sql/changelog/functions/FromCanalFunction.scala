// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.sources.records._

/**
 * The SQL table function `from_canal`: Canal's flat messages, read as a table.
 *
 * {{{
 *   from_canal(TABLE(source), schema [, key] [, value] [, input] [, sequence_by] ...)
 * }}}
 *
 * `docs/sources-and-sinks.md` tells all arguments.
 */
object FromCanalFunction {
  val Name = "from_canal"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(Name, "Reads Canal's messages as the table they describe")(build)

  private val parameters = Seq(
    "schema",
    "key",
    "value",
    "input",
    "sequence_by",
    "table",
    "metadata",
    "encodings",
    "on_truncate",
    "on_error",
    "dead_letter")

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    val record = new RecordArguments(Name, parameters, expressions)
    val sequence = record.sequenceNames(Seq("es"))
    val format = new CanalFormat(
      record.arguments.text("table"),
      record.truncateFails,
      sequence,
      record.timeZone)
    val canal = format.parse(record.source, record.value)
    record
      .changes(sequence, encodings(record), Nil) { name =>
        canal.metadata(name)
      }
      .read(canal.parsed)
  }

  /** Canal writes every value as text; binary values as one character a byte. */
  private def encodings(record: RecordArguments): StructField => Option[String] = field =>
    record.encodings
      .get(field.name)
      .orElse(field.dataType match {
        case _: DecimalType => Some("string")
        case BinaryType => Some("iso-8859-1")
        case _ => None
      })
}
