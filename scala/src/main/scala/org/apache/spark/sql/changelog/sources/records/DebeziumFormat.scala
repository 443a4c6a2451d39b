// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import java.util.Base64

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.sources.records.ParsedRecord._

/**
 * DebeziumFormat: Debezium's JSON with `before`, `after`, `op` and `source`. The envelope with
 * `schema` and `payload` is optional.
 *
 * @param columns
 *   the columns of the table
 * @param keyColumns
 *   the columns that the record's key may contain
 * @param table
 *   the table of the records, as `table` or `schema.table`; None for every table
 * @param sourceFields
 *   the requested fields of `source`
 */
private[changelog] class DebeziumFormat(
    columns: Seq[StructField],
    keyColumns: Seq[StructField],
    table: Option[String],
    sourceFields: Seq[String],
    timeZone: String) {
  import DebeziumFormat._

  /**
   * @param value
   *   the text of the record
   * @param messageKey
   *   the text of the record's key
   */
  def parse(
      plan: LogicalPlan,
      value: Expression,
      messageKey: Option[Expression]): DebeziumRecord = {
    val (withJson, json) =
      add(plan, "_json", RecordColumn.parse(value, schema, timeZone, Corrupt))
    val bare = struct(payload.fieldNames.map(name => name -> field(json, name)).toSeq: _*)
    val (withRecord, record) =
      add(withJson, "_record", Coalesce(Seq(field(json, "payload"), bare)))
    val (withTypes, types) = add(withRecord, "_types", typesOf(field(json, "schema")))
    val (parsed, keyRow) = messageKey match {
      case None => (withTypes, None)
      case Some(key) =>
        val keySchema = StructType(keyFields.fields :+ StructField("payload", keyFields))
        val parsedKey =
          RecordColumn.parse(key, keySchema.add(Corrupt, StringType), timeZone, Corrupt)
        val (withKey, column) = add(withTypes, "_key", parsedKey)
        (withKey, Some(column))
    }
    val op = field(record, "op")
    val before = image(field(record, "before"), types)
    val after =
      Coalesce(Seq("$.payload.after", "$.after").map(path => GetJsonObject(value, literal(path))))
    DebeziumRecord(
      ParsedRecord(
        parsed,
        skipped = Or(Or(IsNull(value), isOneOf(op, Message, Truncate)), Not(isOfTable(record))),
        fault = faultOf(value, json, record, op),
        truncates = And(isOneOf(op, Truncate), isOfTable(record)),
        deletes = isOneOf(op, "d"),
        updates = isOneOf(op, "u"),
        before = keyRow.map(orKey(before, _, op)).getOrElse(before),
        after = image(field(record, "after"), types).copy(sent = Some(JsonObjectKeys(after))),
        record = value),
      record)
  }

  private def source = StructType(
    (sourceFields ++ Seq("table", "schema", "db")).distinct.map(StructField(_, StringType)))

  private def row = StructType(columns.map(column => StructField(column.name, StringType)))

  private def keyFields = StructType(keyColumns.map(c => StructField(c.name, StringType)))

  private def payload = StructType(
    Seq(
      StructField("op", StringType),
      StructField("before", row),
      StructField("after", row),
      StructField("source", source),
      StructField("ts_ms", StringType),
      StructField("transaction", TransactionFields)))

  private def schema = StructType(
    payload.fields ++ Seq(
      StructField("payload", payload),
      StructField("schema", StructType(Seq(StructField("fields", ArrayType(EnvelopeField))))),
      StructField(Corrupt, StringType)))

  /** Returns the column types of the after image, as described by the record. */
  private def typesOf(envelope: Expression): Expression =
    at(
      part(field(envelope, "fields"), "fields"),
      part(field(envelope, "fields"), "field"),
      "after")

  private def image(row: Expression, types: Expression): RecordImage =
    RecordImage(IsNotNull(row), field(row, _), name => Some(describe(types, name)))

  /** Returns the before image, or for a delete without a before image the record's key. */
  private def orKey(before: RecordImage, keyRow: Expression, op: Expression): RecordImage = {
    val names = keyColumns.map(_.name)
    def fromKey(name: String) =
      Coalesce(Seq(field(field(keyRow, "payload"), name), field(keyRow, name)))
    val hasKey =
      And(isOneOf(op, "d"), names.map(fromKey(_)).map(IsNotNull(_)).reduce[Expression](And(_, _)))
    before.copy(
      exists = Or(before.exists, hasKey),
      text = name =>
        if (names.contains(name)) If(before.exists, before.text(name), fromKey(name))
        else before.text(name))
  }

  private def describe(types: Expression, column: String): Description = {
    val names = part(types, "field")
    def told(what: String) = at(part(types, what), names, column)
    val named = told("name")
    // The name is a class or a schema; the last word is the type.
    val last = SubstringIndex(named, literal("."), Literal(-1))
    val parameters = told("parameters")
    Description(If(IsNull(named), told("type"), last), GetMapValue(parameters, literal("scale")))
  }

  private def faultOf(
      value: Expression,
      json: Expression,
      record: Expression,
      op: Expression): Expression = {
    val ops = Seq("c", "r", "u", "d", Message, Truncate)
    val numbers = sourceFields.filter(Numbers.contains).map { name =>
      val text = field(field(record, "source"), name)
      And(IsNotNull(text), IsNull(typed(text, name))) -> literal(s"its $name is not a number")
    }
    firstFault(
      (Seq(
        Or(IsNull(json), Not(StartsWith(StringTrimLeft(value), literal("{")))) ->
          literal("it is not a JSON object"),
        IsNotNull(field(json, Corrupt)) -> literal("it is not JSON of the expected structure"),
        IsNull(op) -> literal("it has no op, so it is no change as Debezium writes it"),
        Not(isOneOf(op, ops: _*)) ->
          Concat(
            Seq(literal("its op is '"), op, literal(s"', not one of ${ops.mkString(", ")}")))) ++
        numbers).map { case (applies, fault) => And(IsNotNull(value), applies) -> fault })
  }

  private def isOfTable(record: Expression): Expression =
    table.map(isOf(_, field(record, "source"))).getOrElse(Literal(true))

  private def isOf(table: String, source: Expression): Expression = {
    val parts = table.split('.')
    val isTable = isOneOf(field(source, "table"), parts.last)
    val qualifier = parts.init.lastOption.map { name =>
      Or(isOneOf(field(source, "schema"), name), isOneOf(field(source, "db"), name))
    }
    qualifier.map(And(isTable, _)).getOrElse(isTable)
  }
}

/**
 * @param payload
 *   the record without its envelope
 */
private[changelog] case class DebeziumRecord(parsed: ParsedRecord, payload: Expression) {

  /** Returns a typed field, for example `source.lsn` or `ts_ms`, if the field is known. */
  def metadata(path: String): Option[Expression] = path.split('.') match {
    case Array("source", name) =>
      Some(DebeziumFormat.typed(field(field(payload, "source"), name), name))
    case Array("transaction", name)
        if DebeziumFormat.TransactionFields.fieldNames.contains(name) =>
      Some(DebeziumFormat.typed(field(field(payload, "transaction"), name), name))
    case Array(name @ ("op" | "ts_ms")) => Some(DebeziumFormat.typed(field(payload, name), name))
    case _ => None
  }
}

private[changelog] object DebeziumFormat {
  private val Corrupt = "_corrupt"
  private val Message = "m"
  private val Truncate = "t"

  val TransactionFields: StructType = StructType(
    Seq("id", "total_order", "data_collection_order").map(StructField(_, StringType)))

  private val ColumnField = StructType(
    Seq(
      StructField("field", StringType),
      StructField("type", StringType),
      StructField("name", StringType),
      StructField("parameters", MapType(StringType, StringType))))

  private val EnvelopeField = StructType(
    Seq(StructField("field", StringType), StructField("fields", ArrayType(ColumnField))))

  /** The numeric fields of `source`. Other fields are texts. */
  val Numbers: Map[String, DataType] = Map(
    "lsn" -> LongType,
    "pos" -> LongType,
    "row" -> LongType,
    "ts_ms" -> LongType,
    "ts_us" -> LongType,
    "ts_ns" -> LongType,
    "txId" -> LongType,
    "total_order" -> LongType,
    "data_collection_order" -> LongType,
    "event_serial_no" -> LongType,
    "scn" -> DecimalType(38, 0),
    "commit_scn" -> DecimalType(38, 0))

  /** Converts the text of a field of `source` or `transaction` to the field's type. */
  def typed(text: Expression, name: String): Expression =
    Numbers.get(name).map(Cast(text, _, None, EvalMode.TRY)).getOrElse(text)

  /**
   * The fields that order the changes of a row, by database: PostgreSQL, then MySQL and MariaDB.
   */
  val DefaultSequence: Seq[String] = Seq("lsn", "file", "pos", "row", "ts_ms")

  /** Returns the texts that represent a value not sent, one per type of column. */
  def unavailableTexts(placeholder: String): Seq[String] = {
    val bytes = placeholder.getBytes(java.nio.charset.StandardCharsets.UTF_8)
    Seq(
      placeholder,
      Base64.getEncoder.encodeToString(bytes),
      s"""["$placeholder"]""",
      bytes.mkString("[", ",", "]"),
      s"""{"$placeholder":"$placeholder"}""")
  }

  /** Returns a field of each struct in an array. */
  private def part(array: Expression, name: String): Expression = {
    val element = array.dataType.asInstanceOf[ArrayType].elementType.asInstanceOf[StructType]
    val index = element.fieldIndex(name)
    GetArrayStructFields(array, element(index), index, element.length, containsNull = true)
  }

  /** Returns the value at the position of `name` in `names`. */
  private def at(values: Expression, names: Expression, name: String): Expression = {
    val position = Cast(ArrayPosition(names, literal(name)), IntegerType, None, EvalMode.LEGACY)
    GetArrayItem(values, Subtract(position, Literal(1)), failOnError = false)
  }
}
