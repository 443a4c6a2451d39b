// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.DecimalType

import org.apache.spark.sql.changelog.sources.records.UpsertFormat

/**
 * The SQL table function `from_upsert_kafka`: a compacted topic, read as the table it holds.
 *
 * {{{
 *   from_upsert_kafka(TABLE(topic), schema, key [, value] [, message_key] [, sequence_by] ...)
 * }}}
 *
 * `docs/sources-and-sinks.md` tells all arguments.
 */
object FromUpsertKafkaFunction {
  val Name = "from_upsert_kafka"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(Name, "Reads a compacted topic as the table it holds")(build)

  private val parameters = Seq(
    "schema",
    "key",
    "value",
    "message_key",
    "sequence_by",
    "metadata",
    "encodings",
    "on_error",
    "dead_letter")

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    val record = new RecordArguments(Name, parameters, expressions)
    if (record.key.isEmpty) {
      throw record.arguments.invalid(
        "key",
        "NULL",
        "the columns that identify a row are expected, as in key => 'id'")
    }
    val messageKey = record.messageKey.getOrElse(record.text("message_key", "key"))
    val format = new UpsertFormat(record.fields, record.key.map(_.name), record.timeZone)
    record
      .changes(
        record.sequenceNames(Nil),
        field =>
          record.encodings
            .get(field.name)
            .orElse(field.dataType match {
              case _: DecimalType => Some("string")
              case _ => None
            }),
        Nil)(_ => None)
      .read(format.parse(record.source, record.value, messageKey))
  }
}
