// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

class FromChangelogFunctionSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {

  private def rows(sql: String): Seq[String] =
    spark.sql(sql).collect().map(TextChangelog.format).sorted.toSeq

  private def view(name: String, columns: String)(values: String*): Unit =
    spark
      .sql(s"SELECT * FROM VALUES ${values.mkString(", ")} AS t($columns)")
      .createOrReplaceTempView(name)

  private def feed(): Unit = view("feed", "op, word, n")(
    "('+I', 'a', 1)",
    "('+I', 'b', 2)",
    "('-U', 'a', 1)",
    "('+U', 'a', 3)",
    "('-D', 'b', 2)",
    "('+I', 'c', 4)")

  test("arguments are given by position or by name") {
    feed()
    val calls = Seq(
      "from_changelog(TABLE(feed), 'op')",
      "from_changelog(TABLE(feed), change_type => 'op')",
      "from_changelog(change_type => 'OP', source => TABLE(feed))",
      "from_changelog(TABLE(feed), 'op', array('word'), 'retract', NULL, NULL, 'fail')",
      "from_changelog(TABLE(feed), 'op', 'word', 'upsert')",
      "from_changelog(TABLE(feed), 'op', key => 'feed.word', input => 'UPSERT')")
    calls.foreach(call => assert(rows(s"SELECT * FROM $call") == Seq("a 3", "c 4"), call))
  }

  test("the source is a table, a common table expression or a subquery") {
    feed()
    val queries = Seq(
      "WITH f AS (SELECT * FROM feed) SELECT * FROM from_changelog(TABLE(f), 'op')",
      "SELECT * FROM from_changelog(TABLE(SELECT * FROM feed WHERE n > 0), 'op')",
      "WITH t AS (SELECT * FROM from_changelog(TABLE(feed), 'op')) SELECT * FROM t")
    queries.foreach(query => assert(rows(query) == Seq("a 3", "c 4"), query))
  }

  test("the change types of Spark, Flink, Iceberg and Debezium are known in any case") {
    val vocabularies = Seq(
      ("insert", "update_preimage", "update_postimage", "delete"),
      ("+I", "-U", "+U", "-D"),
      ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"),
      ("insert", "update_before", "update_after", "delete"))
    vocabularies.foreach { case (insert, before, after, delete) =>
      view("feed", "op, word, n")(
        s"('$insert', 'a', 1)",
        s"('$before', 'a', 1)",
        s"('$after', 'a', 2)",
        s"('$insert', 'b', 1)",
        s"('$delete', 'b', 1)")
      assert(rows("SELECT * FROM from_changelog(TABLE(feed), 'op')") == Seq("a 2"), insert)
    }
    view("feed", "op, id, n")("('r', 1, 1)", "('c', 2, 1)", "('u', 1, 2)", "('D', 2, NULL)")
    val read = "SELECT * FROM from_changelog(TABLE(feed), 'op', 'id', 'upsert')"
    assert(rows(read) == Seq("1 2"))
  }

  test("a map translates a user's own change types, literally") {
    view("feed", "op, word")("('new', 'a')", "('new', 'b')", "('gone', 'a')")
    val types = "change_types => map('new', '+I', 'gone', 'delete')"
    assert(rows(s"SELECT * FROM from_changelog(TABLE(feed), 'op', $types)") == Seq("b"))
    view("feed", "op, word")("('NEW', 'a')")
    checkError(
      "CHANGELOG_CHANGE_TYPE_UNKNOWN",
      "column" -> "op",
      "value" -> "'NEW'",
      "expected" -> "gone, new") {
      rows(s"SELECT * FROM from_changelog(TABLE(feed), 'op', $types)")
    }
  }

  test("data columns may be called op and _change_type") {
    view("feed", "kind, op, _change_type, n")("('+I', 'x', 'y', 1)", "('+I', 'z', 'y', 2)")
    val read = "from_changelog(TABLE(feed), 'kind')"
    assert(rows(s"SELECT * FROM $read") == Seq("x y 1", "z y 2"))
    assert(rows(s"SELECT op, sum(n) FROM $read GROUP BY op") == Seq("x 1", "z 2"))
    val changes = s"SELECT * FROM to_changelog(TABLE(SELECT op, n FROM $read))"
    assert(rows(changes) == Seq("x 1 insert", "z 2 insert"))
    checkError("CHANGELOG_COLUMN_RESERVED", "column" -> "_change_type") {
      spark.sql(s"SELECT * FROM to_changelog(TABLE(SELECT * FROM $read))")
    }
    val named = s"SELECT * FROM to_changelog(TABLE(SELECT * FROM $read), change_type => 'kind')"
    assert(spark.sql(named).columns.toSeq == Seq("op", "_change_type", "n", "kind"))
    assert(rows(named) == Seq("x y 1 insert", "z y 2 insert"))
    checkError("CHANGELOG_COLUMN_RESERVED", "column" -> "_row_kind") {
      spark.sql(s"SELECT * FROM to_changelog(TABLE(SELECT n, 1Y AS _row_kind FROM $read))")
    }
  }

  test("column names that need quotes are taken as they are") {
    view("feed", "`the op`, `a.b`, n")("('+I', 1, 1)", "('+U', 1, 2)")
    val read = "SELECT * FROM from_changelog(TABLE(feed), 'the op', array('a.b'), 'upsert')"
    assert(rows(read) == Seq("1 2"))
    assert(rows(read.replace("'a.b'", "'`a.b`'")) == Seq("1 2"))
  }

  test("rows of a batch are netted, whatever their order and type") {
    view("feed", "op, m, v")(
      "('-D', map('a', 1, 'b', 2), array(1))",
      "('+I', map('a', 1, 'b', 2), array(1))",
      "('+I', map('b', 2, 'a', 1), array(1))",
      "('+I', map('c', 3), array(2))",
      "('+I', map('c', 3), array(2))")
    val read = "SELECT m['c'], m['a'], v[0] FROM from_changelog(TABLE(feed), 'op')"
    assert(rows(read) == Seq("3 NULL 2", "3 NULL 2", "NULL 1 1"))
  }

  test("sequence_by settles which change of a key is the newest") {
    view("feed", "op, id, n, ts")(
      "('u', 1, 'new', 5)",
      "('u', 1, 'old', 4)",
      "('d', 2, NULL, 7)",
      "('u', 2, 'late', 6)",
      "('u', 3, 'no time', NULL)",
      "('u', 3, 'time', 0)")
    val call = "from_changelog(TABLE(feed), 'op', 'id', 'upsert', sequence_by => 'ts')"
    assert(rows(s"SELECT id, n FROM $call") == Seq("1 new", "3 time"))
  }

  test("a streaming view, an expression over it and a table function read the same stream") {
    val words = new RawStream(spark, "words", "kind STRING, op STRING, n INT")
    spark
      .sql("SELECT * FROM from_changelog(TABLE(SELECT *, n * 2 AS m FROM words), 'kind', 'op')")
      .createOrReplaceTempView("words_table")
    val dir = QuickFileSystem.temporaryDirectory()
    val query =
      spark.sql("""WITH sums AS (SELECT op, sum(m) AS total FROM words_table GROUP BY op)
        |SELECT * FROM to_changelog(TABLE(sums))""".stripMargin)
    assert(query.isStreaming)
    val running = new RunningChanges(query, dir)
    words.add("+I a 1", "+I b 2")
    assert(running.next() == Seq("a 2 insert", "b 4 insert"))
    words.add("-U b 2", "+U b 3")
    assert(running.next() == Seq("b 4 update_preimage", "b 6 update_postimage"))
    running.stop()
  }

  test("a stream read through common tables is kept up to date, whatever they do") {
    val stream = new RawStream(spark, "words", "word STRING, n INT")
    val query = spark.sql("""WITH a AS (SELECT word, n FROM words WHERE n > 0),
        |     counts AS (SELECT word, count(*) AS c FROM a GROUP BY word)
        |SELECT * FROM to_changelog(
        |  TABLE(SELECT c, count(*) FROM (SELECT * FROM counts UNION ALL SELECT * FROM counts) GROUP BY c))
        |""".stripMargin)
    assert(query.isStreaming)
    val running = new RunningChanges(query, QuickFileSystem.temporaryDirectory())
    stream.add("a 1", "b 1")
    assert(running.next() == Seq("1 4 insert"))
    stream.add("a 1", "a 0")
    assert(running.next() == Seq("1 2 update_postimage", "1 4 update_preimage", "2 2 insert"))
    running.stop()
  }

  /** An argument list, the condition it is refused with, and the error's parameters. */
  private val refused = Seq(
    (
      "TABLE(feed), 'kind'",
      "COLUMN_NOT_FOUND",
      Seq("argument" -> "change_type", "column" -> "kind")),
    (
      "TABLE(feed), 'op', 'x'",
      "COLUMN_NOT_FOUND",
      Seq("argument" -> "key", "columns" -> "op, word, n, m")),
    (
      "TABLE(feed), 'op', sequence_by => 'x'",
      "COLUMN_NOT_FOUND",
      Seq("argument" -> "sequence_by")),
    ("TABLE(feed), 'n'", "ARGUMENT_INVALID", Seq("argument" -> "change_type", "value" -> "n")),
    ("TABLE(feed), 7", "ARGUMENT_INVALID", Seq("argument" -> "change_type", "value" -> "7")),
    ("TABLE(feed), 'op', 7", "ARGUMENT_INVALID", Seq("argument" -> "key", "value" -> "7")),
    ("TABLE(feed), 'op', array(NULL)", "ARGUMENT_INVALID", Seq("argument" -> "key")),
    ("TABLE(feed), 'op', array('word', NULL)", "ARGUMENT_INVALID", Seq("argument" -> "key")),
    ("TABLE(feed), 'op', 'op'", "ARGUMENT_INVALID", Seq("argument" -> "key", "value" -> "op")),
    ("TABLE(feed), 'op', 'm'", "ARGUMENT_INVALID", Seq("argument" -> "key", "value" -> "m")),
    (
      "TABLE(SELECT op, word COLLATE UTF8_LCASE AS word FROM feed), 'op', 'word'",
      "ARGUMENT_INVALID",
      Seq("argument" -> "key", "value" -> "word")),
    (
      "TABLE(feed), 'op', sequence_by => 'm'",
      "ARGUMENT_INVALID",
      Seq("argument" -> "sequence_by")),
    (
      "TABLE(feed), 'op', 'word', 'merge'",
      "ARGUMENT_INVALID",
      Seq("argument" -> "input", "value" -> "'merge'")),
    (
      "TABLE(feed), 'op', input => 'upsert'",
      "ARGUMENT_INVALID",
      Seq("argument" -> "key", "value" -> "NULL")),
    ("TABLE(feed), 'op', on_error => 'skip'", "ARGUMENT_INVALID", Seq("argument" -> "on_error")),
    (
      "TABLE(feed), 'op', change_types => 'x'",
      "ARGUMENT_INVALID",
      Seq("argument" -> "change_types")),
    (
      "TABLE(feed), 'op', change_types => map('x', '+X')",
      "ARGUMENT_INVALID",
      Seq("argument" -> "change_types", "value" -> "'+X' for 'x'")),
    (
      "TABLE(feed), 'op', change_types => map('x', CAST(NULL AS STRING))",
      "ARGUMENT_INVALID",
      Seq("value" -> "'null' for 'x'")),
    (
      "TABLE(feed), 'op', change_types => map('x', '+I', 'y', '+U')",
      "ARGUMENT_INVALID",
      Seq("expected" -> "a feed with '+U' but no '-U' needs input => 'upsert' and a key")),
    (
      "change_type => 'op', source => TABLE(feed) PARTITION BY (word)",
      "ARGUMENT_INVALID",
      Seq("argument" -> "source")),
    ("'feed', 'op'", "ARGUMENT_INVALID", Seq("argument" -> "source", "value" -> "'feed'")),
    ("TABLE(feed), uuid()", "ARGUMENT_INVALID", Seq("argument" -> "change_type")),
    (
      "TABLE(SELECT * FROM from_changelog(TABLE(feed), 'op'))",
      "NESTED",
      Seq("function" -> "from_changelog")))

  test("wrong arguments are refused by name") {
    view("feed", "op, word, n, m")("('+I', 'a', 1, map('x', 1))")
    refused.foreach { case (arguments, condition, parameters) =>
      withClue(s"from_changelog($arguments): ") {
        checkError(s"CHANGELOG_$condition", parameters: _*) {
          spark.sql(s"SELECT * FROM from_changelog($arguments)").collect()
        }
      }
    }
  }

  test("a watermark is set on the stream, not on the table") {
    new RawStream(spark, "events", "op STRING, at TIMESTAMP, n INT")
    val late = spark.sql("SELECT * FROM from_changelog(TABLE(events), 'op')")
    checkError("CHANGELOG_WATERMARK_ON_TABLE", "column" -> "at") {
      late.withWatermark("at", "1 minute")
    }
    checkError("CHANGELOG_WATERMARK_ON_TABLE", "column" -> "at") {
      late.where("n > 1").unionByName(late).withWatermark("at", "1 minute").groupBy("at").count()
    }
    spark.table("events").withWatermark("at", "1 minute").createOrReplaceTempView("marked")
    spark.sql("SELECT at, count(*) FROM from_changelog(TABLE(marked), 'op') GROUP BY at")
    view("old", "op, at")("('+I', TIMESTAMP '2020-01-01 00:00:00')")
    val table = spark.sql("SELECT * FROM from_changelog(TABLE(old), 'op')")
    assert(table.withWatermark("at", "1 minute").count() == 1)
  }
}
