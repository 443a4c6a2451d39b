// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Generate, LogicalPlan}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.sources.records.ParsedRecord._

/**
 * FlatFormat: JSON with the images of a row as objects, and the kind of a change as a text.
 *
 * @param dialect
 *   the tool that writes the records
 * @param table
 *   the table of the records, as `table` or `database.table`; None for every table
 * @param orderedBy
 *   the fields that order the changes of a row
 * @param oldColumns
 *   the columns that a complete before image has
 */
private[changelog] class FlatFormat(
    dialect: FlatDialect,
    table: Option[String],
    orderedBy: Seq[String],
    oldColumns: Seq[String],
    timeZone: String) {
  import FlatFormat._
  import dialect._

  private val order =
    orderedBy.filter(name => numbers.contains(name) || sequence.contains(name))

  /**
   * @param value
   *   the text of the record
   */
  def parse(plan: LogicalPlan, value: Expression): FlatRecord = {
    val (withJson, json) =
      add(plan, "_json", RecordColumn.parse(value, schema, timeZone, Corrupt))
    val (withFault, fault) = add(withJson, "_record_fault", faultOf(value, json))
    // A record without rows still needs a row for its fault.
    val nothing = CreateArray(Seq(Literal(null, RowPair)))
    val kind = field(json, kindField)
    val deletes = isOneOf(kind, delete)
    val zipped = ArraysZip(images(json, deletes), Seq(literal("data"), literal("old")))
    val ofRows = isOneOf(kind, changes: _*)
    val (withRows, rows) =
      add(
        withFault,
        "_rows",
        If(And(ofRows, IsNull(fault)), Cast(zipped, ArrayType(RowPair)), nothing))
    val row = AttributeReference("_row", RowPair)()
    val exploded = Generate(Explode(rows), Nil, outer = false, None, Seq(row), withRows)
    val data = field(row, "data")
    FlatRecord(
      ParsedRecord(
        exploded,
        skipped = Or(Or(IsNull(value), Not(ofRows)), Not(isOfTable(json))),
        fault = fault,
        truncates = And(isOneOf(kind, truncations: _*), isOfTable(json)),
        deletes = deletes,
        updates = isOneOf(kind, update),
        before = if (isPartial) partialBefore(field(row, "old")) else before(json, row, deletes),
        after = RecordImage(
          IsNotNull(data),
          name => {
            val sent = GetMapValue(data, literal(name))
            val old = field(row, "old")
            val unchanged =
              If(has(old, name), GetMapValue(old, literal(name)), literal(NotSent))
            val isNotSent = And(isOneOf(kind, update), Not(has(data, name)))
            if (isPartial) If(isNotSent, unchanged, sent) else sent
          },
          sent = Some(MapKeys(data))),
        record = value),
      json,
      dialect)
  }

  private def before(json: Expression, row: Expression, deletes: Expression): RecordImage = {
    val data = field(row, "data")
    val old = field(row, "old")
    RecordImage(
      And(IsNotNull(data), Or(deletes, IsNotNull(field(json, "old")))),
      name =>
        If(has(old, name), GetMapValue(old, literal(name)), GetMapValue(data, literal(name))))
  }

  /** Returns the before image as sent, if it has all columns that are needed. */
  private def partialBefore(old: Expression): RecordImage = RecordImage(
    oldColumns.map(has(old, _)).foldLeft[Expression](IsNotNull(old))(And(_, _)),
    name => GetMapValue(old, literal(name)))

  private def has(image: Expression, name: String): Expression =
    Coalesce(Seq(MapContainsKey(image, literal(name)), Literal(false)))

  private def faultOf(value: Expression, json: Expression): Expression = {
    val kind = field(json, kindField)
    val isChange = And(isOneOf(kind, changes: _*), isOfTable(json))
    firstFault(
      (Seq(
        Or(IsNull(json), Not(StartsWith(StringTrimLeft(value), literal("{")))) ->
          literal("it is not a JSON object"),
        IsNotNull(field(json, Corrupt)) -> literal("it is not JSON of the expected structure"),
        IsNull(kind) -> literal(s"it has no $kindField, so it is no record as $tool writes it"),
        And(Not(isOneOf(kind, changes: _*)), isUnknown(json)) -> Concat(
          Seq(
            literal(s"its $kindField is '"),
            kind,
            literal(s"', not one of ${changes.mkString(", ")}"))),
        And(isChange, hasNoData(json)) -> literal("it has no data")) ++
        order.map { name =>
          val what = if (numbers.contains(name)) "not a number" else "missing"
          And(isChange, IsNull(typed(json, name))) -> literal(s"its $name is $what")
        }).map { case (applies, fault) => And(IsNotNull(value), applies) -> fault })
  }

  /** Whether a record has neither rows nor DDL. */
  private def isUnknown(json: Expression): Expression = {
    val known = isOneOf(field(json, kindField), statements ++ truncations: _*)
    Not(Or(isOneOf(field(json, "isDdl"), "true"), known))
  }

  private def isOfTable(json: Expression): Expression = table match {
    case None => Literal(true)
    case Some(table) if !schema.fieldNames.contains("database") =>
      val name = field(json, "table")
      Coalesce(
        Seq(
          Or(EqualTo(name, literal(table)), EndsWith(name, literal(s".$table"))),
          Literal(false)))
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
private[changelog] case class FlatRecord(
    parsed: ParsedRecord,
    json: Expression,
    dialect: FlatDialect) {

  /** Returns a typed field, for example `es` or `table`, if the field is known. */
  def metadata(name: String): Option[Expression] =
    if (dialect.metadata.contains(name)) Some(dialect.typed(json, name)) else None
}

private[changelog] object FlatFormat {
  private[records] val Corrupt = "_corrupt"

  /** The text of a value that an update did not send. */
  val NotSent = "\u0000not sent"

  private[records] val Row = MapType(StringType, StringType)

  private val RowPair = StructType(Seq(StructField("data", Row), StructField("old", Row)))
}

/**
 * FlatDialect: the fields of a tool's records.
 *
 * @param kindField
 *   the field with the kind of a record
 * @param statements
 *   the kinds of records that change no rows
 * @param metadata
 *   the metadata fields of a record
 * @param numbers
 *   the numeric ones of them
 * @param sequence
 *   the fields that order the changes of a row by default
 * @param isPartial
 *   whether an image may omit columns: a before image always, an after image if the column is unchanged
 */
private[changelog] sealed abstract class FlatDialect(
    val tool: String,
    val kindField: String,
    inserts: Seq[String],
    val update: String,
    val delete: String,
    val truncations: Seq[String],
    val statements: Seq[String],
    val metadata: Seq[String],
    val numbers: Set[String],
    val sequence: Seq[String],
    val isPartial: Boolean = false) {

  val changes: Seq[String] = inserts ++ Seq(update, delete)

  protected def imageFields: Seq[(String, DataType)]

  /** Returns the rows of a record, and their old values. */
  def images(json: Expression, deletes: Expression): Seq[Expression]

  /** Whether a record has no rows. */
  def hasNoData(json: Expression): Expression = Literal(false)

  lazy val schema: StructType = StructType(
    (imageFields ++ (("isDdl" +: FlatFormat.Corrupt +: metadata).map(_ -> StringType)))
      .map { case (name, dataType) => StructField(name, dataType) })

  def typed(json: Expression, name: String): Expression = {
    val text = field(json, name)
    if (numbers.contains(name)) Cast(text, LongType, None, EvalMode.TRY) else text
  }
}

private[changelog] object FlatDialect {
  import FlatFormat.Row

  /** Canal: `data` has the rows of one statement, and `old` the changed columns. */
  case object Canal
      extends FlatDialect(
        "Canal",
        "type",
        Seq("INSERT"),
        "UPDATE",
        "DELETE",
        truncations = Seq("TRUNCATE", "ERASE"),
        statements = Seq("CREATE", "ALTER", "RENAME", "QUERY", "CINDEX", "DINDEX", "GTID") ++
          Seq("XACOMMIT", "XAROLLBACK", "MHEARTBEAT"),
        metadata = Seq("database", "table", "type", "id", "es", "ts", "gtid", "sql"),
        numbers = Set("id", "es", "ts"),
        sequence = Seq("es")) {
    private val noRows = Literal(new GenericArrayData(Array.empty[Any]), ArrayType(Row))

    override protected def imageFields: Seq[(String, DataType)] =
      Seq("data" -> ArrayType(Row), "old" -> ArrayType(Row))

    override def images(json: Expression, deletes: Expression): Seq[Expression] =
      Seq(field(json, "data"), Coalesce(Seq(field(json, "old"), noRows)))

    override def hasNoData(json: Expression): Expression = Not(
      Coalesce(Seq(GreaterThan(Size(field(json, "data")), Literal(0)), Literal(false))))
  }

  /** Maxwell's daemon: `data` has the row, and `old` the changed columns. */
  case object Maxwell
      extends FlatDialect(
        "Maxwell",
        "type",
        Seq("insert", "bootstrap-insert"),
        "update",
        "delete",
        truncations = Seq("table-drop"),
        statements =
          Seq("bootstrap-start", "bootstrap-complete", "table-create", "table-alter") ++
            Seq("database-create", "database-alter", "database-drop"),
        metadata =
          Seq("database", "table", "type", "ts", "xid", "xoffset", "commit", "position") ++
            Seq("gtid", "server_id", "thread_id"),
        numbers = Set("ts", "xid", "xoffset", "server_id", "thread_id"),
        sequence = Seq("ts")) {

    override protected def imageFields: Seq[(String, DataType)] =
      Seq("data" -> Row, "old" -> Row)

    override def images(json: Expression, deletes: Expression): Seq[Expression] =
      Seq("data", "old").map(name => CreateArray(Seq(field(json, name))))
  }

  /** Oracle GoldenGate's operation-modeled JSON: `before` and `after`. */
  case object GoldenGate
      extends FlatDialect(
        "GoldenGate",
        "op_type",
        Seq("I"),
        "U",
        "D",
        truncations = Seq("T"),
        statements = Nil,
        metadata = Seq("table", "op_type", "op_ts", "current_ts", "pos"),
        numbers = Set.empty,
        sequence = Seq("pos"),
        isPartial = true) {

    override protected def imageFields: Seq[(String, DataType)] =
      Seq("before" -> Row, "after" -> Row)

    override def images(json: Expression, deletes: Expression): Seq[Expression] = {
      val before = field(json, "before")
      Seq(If(deletes, before, field(json, "after")), before).map(row => CreateArray(Seq(row)))
    }
  }
}
