// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.sources.records.ParsedRecord._

/**
 * RecordImage: a row in a record, before or after a change.
 *
 * @param exists
 *   whether the record has the image
 * @param text
 *   the text of a column, NULL for a NULL value
 * @param described
 *   the record's own description of a column's encoding
 * @param sent
 *   the names of all columns in the record
 */
private[changelog] case class RecordImage(
    exists: Expression,
    text: String => Expression,
    described: String => Option[Description] = _ => None,
    sent: Option[Expression] = None)

/**
 * A parsed record of any format: expressions over the rows of `plan`, with one row per changed
 * row.
 *
 * @param plan
 *   the rows of the source, with parsed columns
 * @param skipped
 *   whether the record does not concern the table
 * @param fault
 *   the reason why the record is unreadable, or NULL
 * @param truncates
 *   whether the record empties the table
 * @param deletes
 *   whether the record deletes a row
 * @param updates
 *   whether the record replaces a row
 * @param before
 *   the before image; optional for an update, and possibly only a key for a delete
 * @param after
 *   the after image, except for a delete
 * @param record
 *   the text of the record, for errors
 */
private[changelog] case class ParsedRecord(
    plan: LogicalPlan,
    skipped: Expression,
    fault: Expression,
    truncates: Expression,
    deletes: Expression,
    updates: Expression,
    before: RecordImage,
    after: RecordImage,
    record: Expression)

private[changelog] object ParsedRecord {

  /**
   * Adds a column to a plan. Later columns refer to earlier columns, to avoid repeated
   * computations.
   */
  def add(plan: LogicalPlan, name: String, value: Expression): (LogicalPlan, Attribute) = {
    val column = Alias(value, name)()
    (Project(plan.output :+ column, plan), column.toAttribute)
  }

  /** Returns a field of a struct, by name. */
  def field(struct: Expression, name: String): Expression =
    GetStructField(struct, struct.dataType.asInstanceOf[StructType].fieldIndex(name), Some(name))

  def struct(fields: (String, Expression)*): Expression =
    CreateNamedStruct(fields.flatMap { case (name, value) => Seq(literal(name), value) })

  def literal(text: String): Literal = Literal(UTF8String.fromString(text), StringType)

  val NoText: Literal = Literal(null, StringType)

  /** Returns the first fault whose condition holds. */
  def firstFault(faults: Seq[(Expression, Expression)]): Expression =
    if (faults.isEmpty) NoText else CaseWhen(faults, NoText)

  def isOneOf(value: Expression, texts: String*): Expression =
    Coalesce(Seq(In(value, texts.map(literal)), Literal(false)))
}

/**
 * UpsertFormat: a compacted topic. The value is a row as JSON, or NULL if the row of the record's
 * key is deleted.
 *
 * @param columns
 *   the columns of the table
 * @param key
 *   the names of the key columns, read from the record's key: a JSON object, or the bare value
 *   for a single column
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
        name => if (key.contains(name)) keyText(name) else field(row, name),
        sent = Some(JsonObjectKeys(value))),
      record = value)
  }

  private def isObject(text: Expression): Expression =
    Coalesce(Seq(StartsWith(StringTrimLeft(text), literal("{")), Literal(false)))
}

private[changelog] object UpsertFormat {
  private val Corrupt = "_corrupt"
  private val CorruptField = StructField(Corrupt, StringType)
}
