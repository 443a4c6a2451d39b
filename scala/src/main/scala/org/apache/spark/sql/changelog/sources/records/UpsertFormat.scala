// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.sources.records.ParsedRecord._

/**
 * A compacted topic: the value is a row as JSON, or NULL when the row with the record's key is
 * gone.
 *
 * @param columns
 *   the columns of the table
 * @param key
 *   the names of its key, which the record's key tells: a JSON object, or for a key of one column
 *   also the bare value
 */
private[changelog] class UpsertFormat(
    columns: Seq[StructField],
    key: Seq[String],
    timeZone: String) {
  import UpsertFormat._

  def parse(plan: LogicalPlan, value: Expression, messageKey: Expression): ParsedRecord = {
    def texts(fields: Seq[StructField]) =
      StructType(fields.map(field => StructField(field.name, StringType)) :+ CorruptField)
    val schema = texts(columns)
    val keySchema = texts(columns.filter(field => key.contains(field.name)))
    val (withRow, row) = add(plan, "_row", RecordColumn.parse(value, schema, timeZone, Corrupt))
    val (withKey, keyRow) =
      add(withRow, "_key", RecordColumn.parse(messageKey, keySchema, timeZone, Corrupt))
    def keyText(name: String): Expression = {
      val inObject = field(keyRow, name)
      if (key.size > 1) inObject
      else {
        val quoted =
          GetJsonObject(Concat(Seq(literal("{\"k\":"), messageKey, literal("}"))), literal("$.k"))
        CaseWhen(
          Seq(isObject(messageKey) -> inObject, StartsWith(messageKey, literal("\"")) -> quoted),
          messageKey)
      }
    }
    val hasKey = key.map(name => IsNotNull(keyText(name))).reduce[Expression](And(_, _))
    ParsedRecord(
      withKey,
      skipped = Literal(false),
      fault = firstFault(
        Seq(
          And(IsNotNull(value), Or(IsNull(row), Not(isObject(value)))) ->
            literal("its value is not a JSON object"),
          IsNotNull(field(row, Corrupt)) -> literal("its value is not JSON"),
          Not(hasKey) -> literal(s"its key does not tell ${key.mkString(", ")}"))),
      truncates = Literal.FalseLiteral,
      deletes = IsNull(value),
      updates = Literal(false),
      before = RecordImage(
        And(IsNull(value), hasKey),
        name => if (key.contains(name)) keyText(name) else NoText),
      after = RecordImage(
        IsNotNull(value),
        name => if (key.contains(name)) keyText(name) else field(row, name)),
      record = value)
  }

  private def isObject(text: Expression): Expression =
    Coalesce(Seq(StartsWith(StringTrimLeft(text), literal("{")), Literal(false)))
}

private[changelog] object UpsertFormat {
  private val Corrupt = "_corrupt"
  private val CorruptField = StructField(Corrupt, StringType)
}
