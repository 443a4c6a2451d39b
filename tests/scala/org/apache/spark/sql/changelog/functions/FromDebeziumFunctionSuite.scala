// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

class FromDebeziumFunctionSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private def call(schema: String, arguments: String): String =
    s"from_debezium(TABLE(records), schema => '$schema', $arguments)"

  private def feed(file: String) = new RecordFeed(spark, RecordFeed.read(s"debezium/$file.jsonl"))

  /** The records lead to `rows`, read at once, in one micro-batch, and with restarts. */
  private def check(feed: RecordFeed, schema: String, arguments: String)(rows: String*): Unit = {
    val from = call(schema, arguments)
    val expected = rows.sorted
    assert(feed.batch(from) == expected, "as a batch")
    assert(feed.stream(from, size = 1000) == expected, "as one micro-batch")
    assert(feed.stream(from, size = 2, restarts = true) == expected, "with restarts")
  }

  private val customers = "id BIGINT, name STRING, amount DECIMAL(10,2), born DATE"

  test("snapshot, insert, update and delete without old rows, and a tombstone") {
    check(feed("postgres"), customers, "key => 'id', decimal_handling_mode => 'string'")(
      "1 Ada L. 13.75 1815-12-10",
      "3 Cyd -0.01 1970-01-01")
  }

  test("old rows are used where there is no key") {
    check(
      feed("postgres-full"),
      "id INT, name STRING, amount DECIMAL(10,2)",
      "decimal_handling_mode => 'double'")("3 Bob 3.00")
  }

  test("an update that changes the key takes the old row away") {
    check(feed("postgres-full"), "id INT, name STRING, amount DOUBLE", "key => array('id')")(
      "3 Bob 3.0")
  }

  test("the envelope tells the encoding of each column") {
    val columns = "id INT, price DECIMAL(12,4), weight DECIMAL(38,3), rate DOUBLE, sold BOOLEAN, " +
      "day DATE, millis TIMESTAMP_NTZ, micros TIMESTAMP_NTZ, nanos TIMESTAMP, connect TIMESTAMP, " +
      "zoned TIMESTAMP, picture BINARY, tags ARRAY<STRING>, extra VARIANT"
    val columnsShown = "id, price, weight, rate, sold, day, millis, micros, nanos, connect, " +
      "zoned, hex(picture), to_json(tags), extra:a"
    val from = call(columns, "key => 'id'")
    val rows = feed("envelope").batch(from, s"SELECT $columnsShown FROM feed")
    assert(
      rows == Seq(
        "1 123.4500 -1.250 0.1 true 2023-11-14 2023-11-14T22:13:20.123 " +
          "2023-11-14T22:13:20.123456 2023-11-14T22:13:20.123456 2023-11-14T22:13:20.123 " +
          "2023-11-14T22:13:20.123456 00FF21 [\"a\",null,\"b\"] 1",
        "2" + " NULL" * 13,
        "3 -0.0001 170141183460469231731687303715884.000 1.0E300 false 1969-12-31 " +
          "1969-12-31T23:59:59.999 1969-12-31T23:59:59.999999 1969-12-31T23:59:59.999999 " +
          "1969-12-31T23:59:59.999 1969-12-31T23:59:59.999999 '' [] NULL"))
  }

  test("a table can be joined with itself") {
    val sql = "SELECT a.id, b.name FROM feed a LEFT JOIN feed b ON a.id = b.id + 2"
    val from = call("id BIGINT, name STRING", "key => 'id'")
    val expected = Seq("1 NULL", "3 Ada L.")
    assert(feed("postgres").batch(from, sql) == expected)
    assert(feed("postgres").stream(from, size = 3, sql = sql) == expected)
  }

  test("duplicates and late records are settled by the position in the binlog") {
    check(feed("mysql"), "id INT, open BOOLEAN, note STRING", "key => 'id'")(
      "1 false a",
      "5 false b")
  }

  test("records in any order lead to the same table") {
    val records = RecordFeed.read("debezium/mysql.jsonl")
    val random = new scala.util.Random(7)
    (1 to 2).foreach { _ =>
      val shuffled = new RecordFeed(spark, random.shuffle(records))
      val from = call("id INT, open BOOLEAN, note STRING", "key => 'id'")
      assert(shuffled.batch(from) == Seq("1 false a", "5 false b"))
      assert(shuffled.stream(from, size = 3) == Seq("1 false a", "5 false b"))
    }
  }

  test("values that were not sent stay as they are") {
    check(
      feed("toast"),
      "id INT, title STRING, body STRING, size DECIMAL(5,0), tags ARRAY<STRING>",
      "key => 'id', decimal_handling_mode => 'precise'")(
      "1 a2 long text 1 ArraySeq(x)",
      "2 b2 newer 3 NULL")
  }

  test("records of other tables, and messages, are left out") {
    check(
      feed("several-tables"),
      "id INT NOT NULL, name STRING",
      "key => 'id', table => 'public.t'")("1 a", "2 b")
  }

  private def record(op: String, before: String, after: String, lsn: Int): String =
    s"""{"op":"$op","before":$before,"after":$after,"source":{"lsn":$lsn}}"""

  private val good = record("c", "null", """{"id":1,"n":"1"}""", 1)

  /** The record fails the query, and is counted and skipped if asked. */
  private def refused(bad: String, fault: String): Unit = {
    val feed = new RecordFeed(spark, Seq(good, bad))
    val columns = "id INT NOT NULL, n DECIMAL(4,1)"
    val strings = "key => 'id', decimal_handling_mode => 'string'"
    val from = call(columns, strings)
    val error = checkError(
      "CHANGELOG_RECORD_MALFORMED",
      "function" -> "from_debezium",
      "place" -> " (key=NULL, partition=0, offset=1)",
      "fault" -> fault,
      "record" -> bad)(feed.batch(from))
    assert(error.getSqlState == "22000")
    val lenient = call(columns, s"$strings, on_error => 'drop'")
    assert(feed.batch(lenient) == Seq("1 1.0"))
  }

  test("dates and times of a database that Spark does not have are refused, or kept as text") {
    val values = Seq("infinity", "-infinity", "0000-00-00", "0000-00-00 00:00:00")
    for (value <- values; columnType <- Seq("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")) {
      val bad = record("c", "null", s"""{"id":2,"at":"$value"}""", 2)
      val feed = new RecordFeed(spark, Seq(bad))
      val error = checkError(
        "CHANGELOG_RECORD_MALFORMED",
        "fault" -> s"column at has the value '$value', which is not of its type $columnType")(
        feed.batch(call(s"id INT, at $columnType", "key => 'id'")))
      assert(error.getSqlState == "22000")
      assert(
        feed.batch(call(s"id INT, at $columnType", "key => 'id', on_error => 'drop'")).isEmpty)
      val asText = feed.batch(call("id INT, at STRING", "key => 'id'"))
      assert(asText == Seq(s"2 $value"))
    }
  }

  test("a record that can't be read is refused with its place and the reason") {
    refused("{\"op\": \"c\"", "it is not JSON of the expected structure")
    refused("hello", "it is not a JSON object")
    refused(s"[$good,$good]", "it is not a JSON object")
    refused("{}", "it has no op, so it is no change as Debezium writes it")
    refused(record("x", "null", "null", 1), "its op is 'x', not one of c, r, u, d, m, t")
    refused(record("u", "null", "null", 1), "its new row is missing")
    refused(
      record("d", "null", "null", 1),
      "it is a delete that doesn't tell which row, as its old row is missing")
    refused(record("c", "null", "{\"n\":\"1\"}", 1), "its key column id is NULL")
    refused(
      record("c", "null", "{\"id\":2,\"n\":\"one\"}", 1),
      "column n has the value 'one', which is not of its type DECIMAL(4,1)")
    refused(
      record("c", "null", "{\"id\":2,\"n\":\"12345\"}", 1),
      "column n has the value '12345', which is not of its type DECIMAL(4,1)")
    for (digits <- Seq("\"1.25\"", "1.25")) {
      refused(
        record("c", "null", s"{\"id\":2,\"n\":$digits}", 1),
        "column n has the value '1.25', which is not of its type DECIMAL(4,1)")
    }
    refused(
      record("c", "null", "{\"id\":2.5,\"n\":null}", 1),
      "column id has the value '2.5', which is not of its type INT")
    refused("""{"op":"c","after":{"id":2},"source":{"lsn":"x"}}""", "its lsn is not a number")
  }

  test("records that can't be read can be had, with the reason, as batch and stream") {
    val records = Seq(good, "oops", record("c", "null", """{"id":"x"}""", 2), good)
    val feed = new RecordFeed(spark, records)
    val returned = call("id INT", "key => 'id', on_error => 'return'")
    val sql = "SELECT offset, value = 'oops' AS oops, _error FROM feed"
    val expected = Seq(
      "1 true it is not a JSON object",
      "2 false column id has the value 'x', which is not of its type INT")
    assert(feed.batch(returned, sql) == expected)
    assert(feed.stream(returned, sql = sql) == expected)
    assert(feed.stream(call("id INT", "key => 'id', on_error => 'drop'")) == Seq("1"))
  }

  test("a truncation is refused, unless it is to be ignored") {
    val truncation = record("t", "null", "null", 2)
    val feed = new RecordFeed(spark, Seq(good, truncation))
    val columns = "id INT, n STRING"
    // dropped or put aside, it would leave the rows
    Seq("", ", on_error => 'drop'").foreach { otherwise =>
      val error = changelogError(feed.batch(call(columns, s"key => 'id'$otherwise")))
      assert(error.getCondition == "CHANGELOG_RECORD_TRUNCATES")
    }
    val letters = QuickFileSystem.temporaryDirectory()
    val aside = call(columns, s"key => 'id', dead_letter => '$letters'")
    checkError("CHANGELOG_RECORD_TRUNCATES")(feed.stream(aside))
    val ignoring = "key => 'id', on_truncate => 'ignore'"
    assert(feed.batch(call(columns, ignoring)) == Seq("1 1"))
  }

  test("further columns of a record are ignored, or a fault") {
    def changes(call: String, deletes: Boolean)(records: String*): Unit = {
      val feed = new RecordFeed(spark, records)
      def from(more: String) =
        s"$call(TABLE(records), schema => 'id INT, n STRING', key => 'id'$more)"
      val kept = if (deletes) Nil else Seq("1 2")
      assert(feed.batch(from("")) == kept, call)
      assert(feed.stream(from(", on_schema_change => 'ignore'")) == kept, call)
      val fails = from(", on_schema_change => 'fail'")
      checkError(
        "CHANGELOG_RECORD_MALFORMED",
        "fault" -> "its columns note, m are not in the argument schema")(feed.batch(fails))
      val known = new RecordFeed(spark, records.patch(1, Nil, 1))
      assert(known.stream(fails) == (if (deletes) Nil else Seq("1 1")), call)
      val returned = from(", on_schema_change => 'fail', on_error => 'return'")
      assert(feed.batch(returned, "SELECT offset FROM feed") == Seq("1"), call)
    }
    val (first, more) =
      ("""{"id": 1, "n": "1"}""", """{"id": 1, "n": "2", "note": "x", "m": null}""")
    // a delete writes no column of its row
    changes("from_debezium", deletes = true)(
      record("c", "null", first, 1),
      record("u", first, more, 2),
      record("d", more, "null", 3))
    changes("from_debezium", deletes = false)(
      s"""{"schema":{},"payload":${record("c", "null", first, 1)}}""",
      s"""{"schema":{},"payload":${record("u", first, more, 2)}}""")
    changes("from_canal", deletes = false)(
      s"""{"type":"INSERT","es":1,"data":[$first]}""",
      s"""{"type":"UPDATE","es":2,"data":[$more]}""")
    changes("from_maxwell", deletes = false)(
      s"""{"type":"insert","ts":1,"data":$first}""",
      s"""{"type":"update","ts":2,"data":$more}""")
    changes("from_goldengate", deletes = false)(
      s"""{"op_type":"I","pos":"1","after":$first}""",
      s"""{"op_type":"U","pos":"2","after":$more}""")
    changes("from_upsert_kafka", deletes = true)(s"1\t$first", s"1\t$more", "1\tNULL")
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "on_schema_change") {
      new RecordFeed(spark, Seq(good))
        .batch(call("id INT", "key => 'id', on_schema_change => 'evolve'"))
    }
  }

  test("of a long record with its schema, an error shows what is in it") {
    val schema = s"""{"type":"struct","fields":[${"{},".repeat(500)}{}]}"""
    val payload = record("x", "null", "null", 1)
    val feed =
      new RecordFeed(spark, Seq(s"""{"schema":$schema,"payload":$payload}"""))
    val error = changelogError(feed.batch(call("id INT", "key => 'id'")))
    assert(error.getMessageParameters.get("record") == s"""..."payload":$payload}""")
  }

  test("numbers keep their digits, and are rounded only if they are said to be doubles") {
    val digits = "12345678901234567890.123"
    val after =
      s"""{"id":1,"s":$digits,"d":$digits,"r":1.25,"v":{"scale":2,"value":"fQ=="},"nested":{"a":[$digits]}}"""
    val columns =
      "id INT, s STRING, d DECIMAL(38,3), r DECIMAL(4,1), v DECIMAL(4,1), nested STRING"
    val arguments =
      "key => 'id', decimal_handling_mode => 'string', encodings => map('r', 'double', 'v', 'double')"
    check(new RecordFeed(spark, Seq(record("c", "null", after, 1))), columns, arguments)(
      s"""1 $digits $digits 1.3 1.3 {"a":[$digits]}""")
  }

  test("decimals within arrays, structs and maps are refused if digits don't fit") {
    val types = Seq(
      "ARRAY<DECIMAL(6,2)>" -> ((n: String) => s"[1.5, $n]"),
      "STRUCT<a: DECIMAL(6,2)>" -> ((n: String) => s"""{"a":$n}"""),
      "MAP<STRING, ARRAY<DECIMAL(6,2)>>" -> ((n: String) => s"""{"a":[$n]}"""))
    for ((columnType, nested) <- types; number <- Seq("1.255", "\"1.255\"", "12e-4", "12345.5")) {
      val bad = record("c", "null", s"""{"id":1,"v":${nested(number)}}""", 1)
      val error = checkError("CHANGELOG_RECORD_MALFORMED")(
        new RecordFeed(spark, Seq(bad)).batch(call(s"id INT, v $columnType", "key => 'id'")))
      assert(error.getMessage.contains("column v has the value"), error.getMessage)
    }
    val fits = record("c", "null", """{"id":1,"v":[1.25, "1.250", 125e-2, null]}""", 1)
    check(new RecordFeed(spark, Seq(fits)), "id INT, v ARRAY<DECIMAL(6,2)>", "key => 'id'")(
      "1 ArraySeq(1.25, 1.25, 1.25, null)")
  }

  test("no encoding is guessed") {
    def fault(columns: String, value: String, arguments: String = "") = {
      val feed = new RecordFeed(spark, Seq(record("c", "null", s"""{"id":1,"v":$value}""", 1)))
      changelogError(feed.batch(call(columns, s"key => 'id'$arguments"))).getMessageParameters
        .get("fault")
    }
    assert(
      fault("id INT, v DECIMAL(4,1)", "\"1234\"") ==
        "column v has the value '1234', a DECIMAL(4,1) of unknown encoding: " +
        "give decimal_handling_mode")
    assert(
      fault("id INT, v TIMESTAMP", "1700000000000") ==
        "column v has the value '1700000000000', a TIMESTAMP in an unknown unit: " +
        "give time_precision_mode or encodings")
    assert(
      fault("id INT, v BINARY", "\"?\"") ==
        "column v has the value '?', which is not of its type BINARY")
  }

  test("encodings can be told") {
    val after =
      """{"id":1,"d":"BNI=","t":1700000000000,"u":1700000000123456,"b":"00ff","i":"2023-11-14T00:00:00Z"}"""
    val feed = new RecordFeed(spark, Seq(record("c", "null", after, 1)))
    val columns = "id INT, d DECIMAL(6,2), t TIMESTAMP, u TIMESTAMP, b BINARY, i TIMESTAMP"
    val arguments = "key => 'id', decimal_handling_mode => 'precise', " +
      "time_precision_mode => 'connect', binary_handling_mode => 'hex', " +
      "encodings => map('u', 'io.debezium.time.MicroTimestamp')"
    val rows =
      feed.batch(call(columns, arguments), "SELECT id, d, t, u, hex(b), i FROM feed")
    assert(
      rows ==
        Seq("1 12.34 2023-11-14T22:13:20 2023-11-14T22:13:20.123456 00FF 2023-11-14T00:00"))
  }

  test("what tells about a record can be columns of the table") {
    val from = call(
      "id BIGINT, name STRING",
      "key => 'id', metadata => array('source.lsn', 'op', 'offset', 'source.schema')")
    val rows = feed("postgres").stream(from, size = 100)
    assert(rows == Seq("1 Ada L. 140 u 3 public", "3 Cyd 120 c 2 public"))
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "metadata") {
      feed("postgres").batch(call("id BIGINT", "metadata => 'op'"))
    }
  }

  test("a delete without its old row is known by the key of the record") {
    val records = Seq(
      good,
      record("d", "null", "null", 2).prependedAll("{\"id\":1}\t"),
      record("c", "null", """{"id":2,"n":"2"}""", 3),
      record("c", "null", """{"id":3,"n":"3"}""", 3),
      record("d", "null", "null", 4).prependedAll("{\"schema\":{},\"payload\":{\"id\":2}}\t"))
    check(
      new RecordFeed(spark, records),
      "id INT, n STRING",
      "key => 'id', message_key => 'key'")("3 3")
  }

  test("a value that was not sent and never was is refused") {
    val unsent = """{"id":1,"n":"__debezium_unavailable_value"}"""
    val feed = new RecordFeed(spark, Seq(record("u", "null", unsent, 2)))
    val from = call("id INT, n STRING", "key => 'id'")
    val parameters = Seq("column" -> "n")
    checkError("CHANGELOG_VALUE_UNAVAILABLE", parameters: _*)(feed.batch(from))
    checkError("CHANGELOG_VALUE_UNAVAILABLE", parameters: _*)(feed.stream(from))
    assert(feed.stream(from, sql = "SELECT id FROM feed") == Seq("1"))
  }

  test("arguments are checked") {
    def invalid(argument: String)(arguments: String) =
      checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> argument) {
        feed("postgres").batch(s"from_debezium(TABLE(records), $arguments)")
      }
    invalid("schema")("key => 'id'")
    invalid("schema")("schema => 'id INT, oops'")
    invalid("schema")("schema => 'id INT, ID STRING'")
    invalid("key")("schema => 'id INT', key => 'no'")
    invalid("key")("schema => 'id INT', input => 'upsert'")
    invalid("value")("schema => 'id INT', value => 'offset'")
    invalid("encodings")("schema => 'id INT', encodings => map('id', 'Roman')")
    invalid("encodings")("schema => 'id INT', encodings => map('no', 'Date')")
    invalid("sequence_by")("schema => 'id INT', sequence_by => 'offset'")
    invalid("sequence_by")("schema => 'id INT', key => 'id', sequence_by => 'no'")
    invalid("message_key")("schema => 'id INT', message_key => 'key'")
    invalid("decimal_handling_mode")("schema => 'id INT', decimal_handling_mode => 'no'")
  }
}
