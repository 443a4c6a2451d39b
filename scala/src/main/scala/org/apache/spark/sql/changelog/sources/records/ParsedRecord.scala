// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.sources.records.ParsedRecord._

/**
 * A row as a record holds it: before or after a change.
 *
 * @param exists
 *   whether the record holds it
 * @param text
 *   the text of a column, NULL if the column is NULL
 * @param described
 *   what the record says about the encoding of a column
 */
private[changelog] case class RecordImage(
    exists: Expression,
    text: String => Expression,
    described: String => Option[Description] = _ => None)

/**
 * A record of any format, parsed: expressions over the rows of `plan`, one row per changed row.
 *
 * @param plan
 *   the rows of the source, with what was parsed of them
 * @param skipped
 *   whether it says nothing about the table
 * @param fault
 *   why it can't be read, NULL if it can
 * @param truncates
 *   whether it removes all rows and is to be refused; then it has a fault as well
 * @param deletes
 *   whether it removes a row
 * @param updates
 *   whether it replaces a row
 * @param before
 *   the row before; may be there for an update, and with only its key for a delete
 * @param after
 *   the row after, unless it is deleted
 * @param record
 *   its text, for errors
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

  /** Adds a column to a plan. Each refers to those before it, so that none is computed twice. */
  def add(plan: LogicalPlan, name: String, value: Expression): (LogicalPlan, Attribute) = {
    val column = Alias(value, name)()
    (Project(plan.output :+ column, plan), column.toAttribute)
  }

  /** A field of a struct, by its name. */
  def field(struct: Expression, name: String): Expression =
    GetStructField(struct, struct.dataType.asInstanceOf[StructType].fieldIndex(name), Some(name))

  def struct(fields: (String, Expression)*): Expression =
    CreateNamedStruct(fields.flatMap { case (name, value) => Seq(literal(name), value) })

  def literal(text: String): Literal = Literal(UTF8String.fromString(text), StringType)

  val NoText: Literal = Literal(null, StringType)

  /** The first fault that holds. */
  def firstFault(faults: Seq[(Expression, Expression)]): Expression =
    if (faults.isEmpty) NoText else CaseWhen(faults, NoText)

  def isOneOf(value: Expression, texts: String*): Expression =
    Coalesce(Seq(In(value, texts.map(literal)), Literal(false)))
}

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
