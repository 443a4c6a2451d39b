// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import org.json4s._
import org.json4s.jackson.JsonMethods
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Literal

import org.apache.spark.sql.changelog.testing._

/** What each node of a query sends over a few rows. */
class DryRunSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private lazy val words = new RawStream(spark, "words", "word STRING, n INT")
  private lazy val raw =
    new RawStream(spark, "raw", "op STRING, id INT, city STRING, fare INT, at TIMESTAMP")

  private lazy val views: Unit = {
    words
    raw
    view("rides", "from_changelog(TABLE(raw), 'op', 'id')")
    view("bag", "from_changelog(TABLE(raw), 'op')")
    view("latest", "from_changelog(TABLE(raw), 'op', 'id', 'upsert', 'at')")
  }

  private def view(name: String, source: String): Unit =
    spark.sql(s"SELECT * FROM $source").createOrReplaceTempView(name)

  private def statement(sql: String): String = spark.sql(sql).collect() match {
    case Array(Row(text: String)) => text
    case other => fail(s"not one text: ${other.mkString}")
  }

  private def textOf(sample: String, sql: String): String =
    statement(s"EXPLAIN CHANGELOG DRY RUN OVER ${Literal(sample).sql} $sql")

  /** What a node sends, each batch's changes in order, by its name. */
  private def emitted(sample: String, sql: String): Seq[(String, Seq[Seq[String]])] =
    nodes(
      JsonMethods.parse(statement(s"EXPLAIN CHANGELOG FORMAT JSON DRY RUN OVER $sample $sql")))

  private def nodes(node: JValue): Seq[(String, Seq[Seq[String]])] = {
    val JString(name) = node \ "node": @unchecked
    val batches = (node \ "emitted").children.map(
      _.children
        .map {
          case JString(change) => change
          case other => fail(s"not a text: $other")
        }
        .sorted)
    (name -> batches) +: (node \ "children").children.flatMap(nodes)
  }

  private def over(changes: String*): String = Literal(changes.mkString("\n")).sql

  private val cascade =
    "SELECT n, count(*) AS freq FROM (SELECT city, count(*) AS n FROM rides GROUP BY city) GROUP BY n"

  test("each node tells what it sends in each batch") {
    views
    val sample = over("rides +I 1 a 5 NULL", "& rides +I 2 b 7 NULL", "rides -D 2 b 7 NULL")
    val nodes = emitted(sample, cascade)
    assert(
      nodes.filterNot(_._1 == "ChangelogSource") == Seq(
        "ToChangelog" -> Seq(Seq("+I 1 2"), Seq("+U 1 1", "-U 1 2")),
        "ChangelogAggregate" -> Seq(Seq("+I 1 2"), Seq("+U 1 1", "-U 1 2")),
        "ChangelogAggregate" -> Seq(Seq("+I 1", "+I 1"), Seq("-D 1")),
        "Project" -> Seq(Seq("+I a", "+I b"), Seq("-D b"))))
    // of a source all columns that Spark leaves
    val ("ChangelogSource", changes) = nodes.last: @unchecked
    assert(changes.map(_.size) == Seq(2, 1) && changes.last.head.startsWith("-D"))
  }

  test("the text has a line for each batch below each node, and the picture too") {
    views
    val sample = "rides +I 1 a 5 NULL\nrides +I 2 'new york' 7 NULL"
    val sql = "SELECT city, sum(fare) AS s FROM rides GROUP BY city"
    val lines = textOf(sample, sql).linesIterator.map(_.trim).toSeq
    assert(lines.count(_ == "> 1: +I a 5") >= 2, lines)
    assert(lines.contains("> 2: +I 'new york' 7"), lines)
    val picture =
      statement(s"EXPLAIN CHANGELOG FORMAT SVG DRY RUN OVER ${Literal(sample).sql} $sql")
    assert(picture.contains("2: +I 'new york' 7"))
  }

  test("sources are told by their names, or by their numbers") {
    views
    val sql =
      "SELECT w.word, r.fare FROM words AS w JOIN rides AS r ON w.word = r.city"
    val named = over("words +I a 1", "rides +I 1 a 5 NULL", "rides -D 1 a 5 NULL")
    val numbered = over("1 +I a 1", "2 +I 1 a 5 NULL", "2 -D 1 a 5 NULL")
    val joined = Seq(Nil, Seq("+I a 5"), Seq("-D a 5"))
    assert(emitted(named, sql).head == "ToChangelog" -> joined)
    assert(emitted(numbered, sql).head == "ToChangelog" -> joined)
  }

  test("values are words or JSON, as a cast reads them") {
    views
    new RawStream(spark, "lists", "id INT, items ARRAY<INT>, at TIMESTAMP")
    val sample = over(
      "-- two forms",
      "+I 1 [1,2] '2026-01-02 03:04:05'",
      """+I {"id": 2, "items": [3], "at": null}""",
      """+I [3, null, "2026-01-02"]""")
    assert(
      emitted(sample, "SELECT * FROM lists").head._2 == Seq(
        Seq("+I 1 '[1, 2]' '2026-01-02 03:04:05'"),
        Seq("+I 2 [3] NULL"),
        Seq("+I 3 NULL '2026-01-02 00:00:00'")))
  }

  test("changes are of the table that from_debezium and its like keep") {
    new RawStream(spark, "envelopes", "value STRING")
    view("people", "from_debezium(TABLE(envelopes), 'id INT, name STRING', key => 'id')")
    val sample = over("people +I 1 Ann", "people +U 1 Eve", "people -D 1 Eve")
    assert(
      emitted(sample, "SELECT name FROM people").head._2 ==
        Seq(Seq("+I Ann"), Seq("+I Eve", "-D Ann"), Seq("-D Eve")))
  }

  test("a table takes the place of a stream") {
    spark.sql("SELECT 'x' AS op, 1 AS id").createOrReplaceTempView("plain")
    val sql = "SELECT count(*) AS n FROM from_changelog(TABLE(plain), 'op', 'id')"
    assert(emitted(over("+I 1", "+I 2"), sql).head._2 == Seq(Seq("+I 1"), Seq("+U 2", "-U 1")))
  }

  test("the first rows of the sources come one by one") {
    views
    raw.reset()
    words.reset()
    raw.add("+I 1 a 5 NULL", "+I 2 a 7 NULL", "-D 1 a 5 NULL", "+I 3 z 1 NULL")
    words.add("a 1")
    val sql =
      "SELECT city, sum(fare) AS s, any_value(n) AS n FROM rides JOIN words ON city = word GROUP BY city"
    assert(
      emitted("3 ROWS", sql).head._2 ==
        Seq(Seq("+I a 5 1"), Seq("+U a 12 1", "-U a 5 1"), Seq("+U a 7 1", "-U a 12 1")))
    assert(raw.toDF.isStreaming && spark.streams.active.isEmpty)
  }

  test("a watermark passes as it does in a query that runs") {
    new RawStream(spark, "clicks", "at TIMESTAMP, n INT")
    spark.table("clicks").withWatermark("at", "10 minutes").createOrReplaceTempView("timed")
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    try {
      val sql =
        "SELECT * FROM to_changelog(TABLE(SELECT window.end AS over, count(*) AS c FROM timed " +
          "GROUP BY window(at, '1 hour')), mode => 'append')"
      val sample = over("+I '2026-01-01 10:05:00' 1", "+I '2026-01-01 12:00:00' 1")
      val batches = emitted(sample, sql).head._2
      assert(batches.flatten == Seq("+I '2026-01-01 11:00:00' 1"))
    } finally spark.conf.unset("spark.sql.streaming.noDataMicroBatches.enabled")
  }

  private val steps = Seq(
    Seq("+I 1 a 5 NULL", "+I 2 a 7 NULL", "+I 3 b 2 NULL"),
    Seq("-U 1 a 5 NULL", "+U 1 b 5 NULL", "+I 4 c 1 NULL"),
    Seq("-D 2 a 7 NULL", "-D 3 b 2 NULL"))

  Seq(
    cascade,
    "SELECT city, max(fare) AS m, count(DISTINCT fare) AS d FROM rides GROUP BY city HAVING count(*) > 1",
    "SELECT l.id, r.fare FROM rides l LEFT JOIN rides r ON l.id = r.fare AND r.fare > 1",
    "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY city ORDER BY fare, id) AS r FROM rides) WHERE r <= 1",
    "SELECT id, sum(fare) OVER (PARTITION BY city ORDER BY id) AS s FROM rides",
    "SELECT id FROM rides WHERE city IN (SELECT city FROM rides WHERE fare > 4)",
    "SELECT id, (SELECT max(fare) FROM rides) AS most FROM rides",
    "SELECT city FROM rides UNION SELECT upper(city) FROM rides",
    "SELECT city, median(fare) AS m FROM rides GROUP BY city",
    "SELECT a.city, b.n FROM (SELECT city, count(*) AS n FROM rides GROUP BY city) a JOIN (SELECT city, count(*) AS n FROM rides GROUP BY city) b ON a.n = b.n",
    "WITH t AS (SELECT city, sum(fare) AS s FROM rides GROUP BY city) SELECT * FROM t WHERE s = (SELECT max(s) FROM t)")
    .foreach { sql =>
      test(s"the result is what a query that runs sends: $sql") {
        views
        raw.reset()
        val changes = spark.sql(s"SELECT * FROM to_changelog(TABLE($sql))")
        val query = new RunningChanges(changes, QuickFileSystem.temporaryDirectory())
        val expected =
          try
            steps.map { changes =>
              raw.add(changes: _*)
              query.next()
            }
          finally query.stop()
        val sample = steps.flatMap { changes =>
          s"rides ${changes.head}" +: changes.tail.map(change => s"& rides $change")
        }
        val found = emitted(over(sample: _*), sql).head._2
        val kinds = Map(
          "+I" -> "insert",
          "-U" -> "update_preimage",
          "+U" -> "update_postimage",
          "-D" -> "delete")
        val asEmitted = found.map(_.map { change =>
          val Array(kind, values) = change.split(" ", 2)
          s"$values ${kinds(kind)}"
        }.sorted)
        assert(asEmitted == expected)
      }
    }

  test("what can't be read is refused, and says how it is written") {
    views
    def refused(line: String, reason: String) =
      checkError("CHANGELOG_DRY_RUN_CHANGE_INVALID", "line" -> line, "reason" -> reason)(
        textOf(line, "SELECT * FROM rides"))
    refused("rides +I 1 a", "4 values are expected, not 2")
    refused("""rides +I {"town": "a"}""", "there is no column town")
    val error = changelogError(textOf("rides +I x a 5 NULL", "SELECT * FROM rides"))
    assert(error.getMessage.contains("id is a INT: "), error)
    assert(
      changelogError(textOf("rides 1 a", "SELECT * FROM rides")).getMessage.contains("+I, -U"))
    checkError("CHANGELOG_DRY_RUN_CHANGE_INVALID", "reason" -> "the source sends insert only")(
      textOf("words -D a 1", "SELECT * FROM words"))
    checkError(
      "CHANGELOG_DRY_RUN_SOURCE_NOT_FOUND",
      "name" -> "'trips'",
      "sources" -> "1 or rides (id INT, city STRING, fare INT, at TIMESTAMP)")(
      textOf("trips +I 1 a 5 NULL", "SELECT * FROM rides"))
    checkError("CHANGELOG_DRY_RUN_SOURCE_NOT_FOUND", "name" -> "none")(
      textOf("+I 1 a 5 NULL", "SELECT * FROM rides JOIN words ON city = word"))
  }

  test("without rows there is nothing to run over") {
    views
    raw.reset()
    def refused(sample: String, sql: String, reason: String) =
      checkError("CHANGELOG_DRY_RUN_WITHOUT_ROWS", "reason" -> reason)(
        statement(s"EXPLAIN CHANGELOG DRY RUN OVER $sample $sql"))
    refused("5 ROWS", "SELECT * FROM rides", "the sources have no rows yet")
    refused("''", "SELECT * FROM rides", "the text has no changes")
    refused("5 ROWS", "SELECT 1 AS one", "the query reads no changes")
  }

  test("nothing is left of a dry run, wherever its checkpoint was") {
    views
    val home = QuickFileSystem.temporaryDirectory()
    spark.conf.set("spark.sql.streaming.checkpointLocation", home.getPath)
    try {
      assert(emitted(over("rides +I 1 a 5 NULL"), cascade).head._2 == Seq(Seq("+I 1 1")))
      assert(home.list().isEmpty && spark.streams.active.isEmpty)
    } finally spark.conf.unset("spark.sql.streaming.checkpointLocation")
  }

  test("an error of the query is told as it is") {
    views
    val sample = over("rides +I 1 a 0 NULL")
    val error = intercept[Throwable](emitted(sample, "SELECT 1 / fare AS x FROM rides"))
    assert(error.getMessage.contains("DIVIDE_BY_ZERO"), error)
    checkError("CHANGELOG_NONDETERMINISTIC_EXPRESSION")(
      emitted(sample, "SELECT rand() AS x FROM rides"))
  }
}
