// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Generate, LogicalPlan}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.sources.records.ParsedRecord._

/**
 * CanalFormat: Canal's flat JSON. `data` has the rows of one statement, and `old` the changed
 * columns.
 *
 * @param table
 *   the table of the records, as `table` or `database.table`; None for every table
 * @param truncateFails
 *   whether a truncation is a fault; if not, truncations are ignored
 * @param sequence
 *   the fields that order the changes of a row
 */
private[changelog] class CanalFormat(
    table: Option[String],
    truncateFails: Boolean,
    sequence: Seq[String],
    timeZone: String) {
  import CanalFormat._

  private val order = sequence.filter(numbers.contains)

  /**
   * @param value
   *   the text of the record
   */
  def parse(plan: LogicalPlan, value: Expression): CanalRecord = {
    val (withJson, json) =
      add(plan, "_json", RecordColumn.parse(value, Schema, timeZone, Corrupt))
    val (withFault, fault) = add(withJson, "_record_fault", faultOf(value, json))
    // A record without rows still needs a row for its fault.
    val nothing = CreateArray(Seq(Literal(null, RowPair)))
    val olds = Coalesce(Seq(field(json, "old"), NoRows))
    val zipped = ArraysZip(Seq(field(json, "data"), olds), Seq(literal("data"), literal("old")))
    val ofRows = isOneOf(field(json, "type"), changes: _*)
    val (withRows, rows) =
      add(
        withFault,
        "_rows",
        If(And(ofRows, IsNull(fault)), Cast(zipped, ArrayType(RowPair)), nothing))
    val row = AttributeReference("_row", RowPair)()
    val exploded = Generate(Explode(rows), Nil, outer = false, None, Seq(row), withRows)
    val data = field(row, "data")
    val old = field(row, "old")
    val kind = field(json, "type")
    CanalRecord(
      ParsedRecord(
        exploded,
        skipped = Or(Or(IsNull(value), Not(ofRows)), Not(isOfTable(json))),
        fault = fault,
        truncates = truncates(json),
        deletes = isOneOf(kind, "DELETE"),
        updates = isOneOf(kind, "UPDATE"),
        before = RecordImage(
          And(IsNotNull(data), Or(isOneOf(kind, "DELETE"), IsNotNull(field(json, "old")))),
          name => {
            val isOld = Coalesce(Seq(MapContainsKey(old, literal(name)), Literal(false)))
            If(isOld, GetMapValue(old, literal(name)), GetMapValue(data, literal(name)))
          }),
        after = RecordImage(IsNotNull(data), name => GetMapValue(data, literal(name))),
        record = value),
      json)
  }

  private def faultOf(value: Expression, json: Expression): Expression = {
    val kind = field(json, "type")
    val isChange = And(isOneOf(kind, changes: _*), isOfTable(json))
    firstFault(
      Seq(
        Or(IsNull(json), Not(StartsWith(StringTrimLeft(value), literal("{")))) ->
          literal("it is not a JSON object"),
        IsNotNull(field(json, Corrupt)) -> literal("it is not JSON of the expected structure"),
        IsNull(kind) -> literal("it has no type, so it is no record as Canal writes it"),
        truncates(json) -> Concat(
          Seq(literal("it is a "), kind, literal(", which empties the table"))),
        And(Not(isOneOf(kind, changes: _*)), isUnknown(json)) -> Concat(
          Seq(
            literal("its type is '"),
            kind,
            literal(s"', not one of ${changes.mkString(", ")}"))),
        And(
          isChange,
          Not(
            Coalesce(Seq(GreaterThan(Size(field(json, "data")), Literal(0)), Literal(false))))) ->
          literal("it has no data"),
        And(isChange, hasNoOrder(json)) -> literal(
          s"its ${order.mkString(" or ")} is not a number")).map { case (applies, fault) =>
        And(IsNotNull(value), applies) -> fault
      })
  }

  private def hasNoOrder(json: Expression): Expression =
    order.map(name => IsNull(typed(json, name))).foldLeft[Expression](Literal(false))(Or(_, _))

  private def truncates(json: Expression): Expression =
    And(
      And(Literal(truncateFails), isOneOf(field(json, "type"), truncations: _*)),
      isOfTable(json))

  /** Whether a record has neither rows nor DDL. */
  private def isUnknown(json: Expression): Expression =
    Not(Or(isOneOf(field(json, "isDdl"), "true"), isOneOf(field(json, "type"), statements: _*)))

  private def isOfTable(json: Expression): Expression = table match {
    case None => Literal(true)
    case Some(table) =>
      val parts = table.split('.')
      val isTable = isOneOf(field(json, "table"), parts.last)
      parts.init.lastOption
        .map(database => And(isTable, isOneOf(field(json, "database"), database)))
        .getOrElse(isTable)
  }
}

/**
 * @param json
 *   the record
 */
private[changelog] case class CanalRecord(parsed: ParsedRecord, json: Expression) {

  /** Returns a typed field, for example `es` or `table`, if the field is known. */
  def metadata(name: String): Option[Expression] =
    if (CanalFormat.Metadata.contains(name)) Some(CanalFormat.typed(json, name)) else None
}

private[changelog] object CanalFormat {
  private val Corrupt = "_corrupt"
  private val changes = Seq("INSERT", "UPDATE", "DELETE")
  private val truncations = Seq("TRUNCATE", "ERASE")
  private val statements =
    Seq("CREATE", "ALTER", "RENAME", "QUERY", "CINDEX", "DINDEX", "GTID") ++
      Seq("XACOMMIT", "XAROLLBACK", "MHEARTBEAT") ++ truncations

  /** The metadata fields of a record. */
  val Metadata: Seq[String] = Seq("database", "table", "type", "id", "es", "ts", "gtid", "sql")

  private val numbers = Set("id", "es", "ts")

  private val Texts = MapType(StringType, StringType)

  private val NoRows = Literal(new GenericArrayData(Array.empty[Any]), ArrayType(Texts))

  private val RowPair = StructType(Seq(StructField("data", Texts), StructField("old", Texts)))

  private val Schema = StructType(
    Seq(
      StructField("data", ArrayType(Texts)),
      StructField("old", ArrayType(Texts)),
      StructField("isDdl", StringType),
      StructField(Corrupt, StringType)) ++ Metadata.map(StructField(_, StringType)))

  def typed(json: Expression, name: String): Expression = {
    val text = field(json, name)
    if (numbers.contains(name)) Cast(text, LongType, None, EvalMode.TRY) else text
  }
}
