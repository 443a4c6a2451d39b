// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.util.Try

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.{SPARK_VERSION, SparkThrowable}

import org.apache.spark.sql.changelog.testing._

/** Another query on the checkpoint of a first one is refused, with what is different. */
class ChangedQuerySuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.MostlyInterpreted)

  private val t = Feed("t", "id INT, g STRING, k INT, v INT, at TIMESTAMP")
  private val u = Feed("u", "id INT, g STRING, k INT, v INT, at TIMESTAMP")

  private def top(order: String, bound: String) =
    s"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY $order) AS r FROM t) WHERE r <= $bound"

  /** What a query was and is, and a word of each that the error must show. */
  private val changed: Seq[(String, String, String, String)] = Seq(
    ("SELECT * FROM t WHERE v > 1", "SELECT * FROM t WHERE v > 2", "1:int", "2:int"),
    (
      "SELECT g, sum(v) FROM t WHERE k > 1 GROUP BY g",
      "SELECT g, sum(v) FROM t WHERE k > 2 GROUP BY g",
      "1:int",
      "2:int"),
    (
      "SELECT g, sum(v) AS s FROM t GROUP BY g HAVING sum(v) > 1",
      "SELECT g, sum(v) AS s FROM t GROUP BY g",
      "GreaterThan",
      "n1.1"),
    (
      "SELECT t.id, u.v FROM t JOIN u ON t.id = u.id",
      "SELECT t.id, u.v FROM t LEFT JOIN u ON t.id = u.id",
      "Inner",
      "LeftOuter"),
    (
      "SELECT t.id, u.v FROM t JOIN u ON t.id = u.id AND t.v < u.v",
      "SELECT t.id, u.v FROM t JOIN u ON t.id = u.id AND t.v > u.v",
      "LessThan",
      "GreaterThan"),
    (
      "SELECT t.id, u.v FROM t JOIN u ON t.id = u.id",
      "SELECT t.id, u.v FROM t JOIN u ON t.id = u.k",
      "s2.id",
      "s2.k"),
    (
      "SELECT /*+ SKEW('t', 'k', 1) */ t.id, u.v FROM t JOIN u ON t.k = u.k",
      "SELECT /*+ SKEW('t', 'k', 2) */ t.id, u.v FROM t JOIN u ON t.k = u.k",
      "1:int",
      "2:int"),
    (top("v DESC, id", "2"), top("v DESC, id", "3"), "2:int", "3:int"),
    (top("v DESC, id", "2"), top("v, id", "2"), "Descending", "Ascending"),
    (
      "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id ROWS 2 PRECEDING) FROM t",
      "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id ROWS 3 PRECEDING) FROM t",
      "2:int",
      "3:int"),
    (
      "SELECT window(at, '1 minute').start, count(*) FROM t GROUP BY window(at, '1 minute')",
      "SELECT window(at, '2 minutes').start, count(*) FROM t GROUP BY window(at, '2 minutes')",
      "60000000",
      "120000000"),
    (
      "SELECT session_window(at, '1 minute').start, count(*) FROM t GROUP BY session_window(at, '1 minute')",
      "SELECT session_window(at, '2 minutes').start, count(*) FROM t GROUP BY session_window(at, '2 minutes')",
      "1 minute",
      "2 minute"),
    (
      "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.g = t.g)",
      "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.g = t.g)",
      "Filter exists",
      "Filter Not(exists"),
    (
      "SELECT g, sum(v) FROM t GROUP BY g",
      "SELECT g, sum(v), count(*) FROM t GROUP BY g",
      "Sum",
      "Count"),
    ("SELECT id, v FROM t", "SELECT id, v + 1 FROM t", "s1.v", "Add"),
    (
      "SELECT id FROM t UNION ALL SELECT k FROM u",
      "SELECT id FROM t UNION SELECT k FROM u",
      "was",
      "Distinct"),
    (
      "SELECT g, sum(v) FROM (SELECT g, v FROM t UNION ALL SELECT g, v FROM u) GROUP BY g",
      "SELECT g, sum(v) FROM (SELECT g, v FROM t UNION ALL SELECT g, k FROM u) GROUP BY g",
      "s2.v:int",
      "s2.k:int"),
    (
      "SELECT id, to_json(struct(v)) FROM t",
      "SELECT id, to_json(struct(k)) FROM t",
      "s1.v",
      "s1.k"),
    (
      "SELECT * FROM t WHERE g LIKE ANY ('a%', 'b%')",
      "SELECT * FROM t WHERE g LIKE ANY ('a%', 'c%')",
      "'b%'",
      "'c%'"),
    ("SELECT * FROM t WHERE g = 'ANSI'", "SELECT * FROM t WHERE g = 'TRY'", "'ANSI'", "'TRY'"),
    (
      "SELECT * FROM t JOIN (VALUES (1, X'AA')) AS c(id, b) USING (id)",
      "SELECT * FROM t JOIN (VALUES (1, X'AB')) AS c(id, b) USING (id)",
      "rows",
      "rows"),
    (
      "SELECT t.id, r.id FROM t JOIN range(10) r ON t.id < r.id",
      "SELECT t.id, r.id FROM t JOIN range(20) r ON t.id < r.id",
      "range 0 10",
      "range 0 20"),
    (
      "SELECT * FROM (SELECT g, v, k FROM t) PIVOT (sum(v) FOR g IN ('a', 'b'))",
      "SELECT * FROM (SELECT g, v, k FROM t) PIVOT (sum(v) FOR g IN ('a', 'c'))",
      "'b'",
      "'c'"))

  private def rows(life: QueryLife): Unit = {
    life.add(t, "+I 1 a 1 10 2020-01-01T00:00:00", "+I 2 a 2 5 2020-01-01T00:03:00")
    life.add(u, "+I 1 a 1 10 2020-01-01T00:00:00")
  }

  /** Starts another query on the checkpoint; gives what is said about it. */
  private def refused(life: QueryLife, condition: String)(start: => Unit): String = {
    val before = life.result.contents
    val error = intercept[Throwable](start)
    assert(life.result.contents == before)
    val ours = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).collectFirst {
      case spark: SparkThrowable if spark.getCondition == condition => spark
    }
    assert(ours.isDefined, error)
    ours.get.asInstanceOf[Throwable].getMessage
  }

  for ((first, second, was, is) <- changed) test(s"$first -> $second") {
    val life = new QueryLife(spark, t, u)
    rows(life)
    life.run(life.changes(first))
    life.add(t, "+I 3 a 1 8 2020-01-01T00:05:00")
    val message = refused(life, "CHANGELOG_QUERY_CHANGED") {
      life.run(life.changes(second))
    }
    assert(message.contains(was) && message.contains(is), message)
    life.run(life.changes(first))
    assert(life.result == life.expected(first))
  }

  test("another time zone below date_trunc") {
    val sql = "SELECT date_trunc('DAY', at) AS day, count(*) FROM t GROUP BY 1"
    val life = new QueryLife(spark, t, u)
    rows(life)
    life.run(life.changes(sql))
    life.add(t, "+I 3 a 1 8 2020-01-01T20:05:00")
    val message = refused(life, "CHANGELOG_QUERY_CHANGED") {
      life.run(life.changes(sql, Map("spark.sql.session.timeZone" -> "Asia/Tokyo")))
    }
    assert(message.contains("spark.sql.session.timeZone: was UTC, is Asia/Tokyo"), message)
  }

  test("ANSI mode for expressions that were without it, though not the other way round") {
    val sql = "SELECT g, sum(v + k) FROM t GROUP BY g"
    val setting = "spark.sql.ansi.enabled"
    val life = new QueryLife(spark, t, u)
    rows(life)
    life.run(life.changes(sql))
    life.add(t, "+I 3 a 1 8 2020-01-01T20:05:00")
    life.run(life.changes(sql, Map(setting -> "false")))
    assert(life.result == life.expected(sql))
    life.add(t, "+I 4 b 1 8 2020-01-01T20:05:00")
    val message = refused(life, "CHANGELOG_QUERY_CHANGED")(life.run(life.changes(sql)))
    assert(message.contains(s"$setting: was false, is true"), message)
  }

  test("names that differ in case, where that tells columns apart") {
    val setting = "spark.sql.caseSensitive"
    val life = new QueryLife(spark, t, u)
    rows(life)
    val sensitive = Map(setting -> "true")
    life.run(life.changes("SELECT id, V FROM (SELECT id, v, k AS V FROM t)", sensitive))
    life.add(t, "+I 3 a 1 8 2020-01-01T20:05:00")
    val message = refused(life, "CHANGELOG_QUERY_CHANGED") {
      life.run(life.changes("SELECT id, V FROM (SELECT id, v FROM t)"))
    }
    assert(message.contains(s"$setting: was true, is false"), message)
  }

  test("sources that have changed places") {
    val life = new QueryLife(spark, t, u)
    rows(life)
    life.run(life.changes("SELECT id FROM t EXCEPT ALL SELECT id FROM u"))
    life.add(t, "+I 3 a 1 8 2020-01-01T20:05:00")
    refused(life, "CHANGELOG_SOURCES_CHANGED") {
      life.run(life.changes("SELECT id FROM u EXCEPT ALL SELECT id FROM t"))
    }
  }

  test("settings that nobody has changed are not among the differences") {
    val life = new QueryLife(spark, t, u)
    rows(life)
    life.run(life.changes("SELECT g, count(*) FROM t WHERE v > 1 GROUP BY g"))
    val message = refused(life, "CHANGELOG_QUERY_CHANGED") {
      life.run(life.changes("SELECT g, count(*) FROM t WHERE v > 2 GROUP BY g"))
    }
    assert(!message.contains("spark.sql"), message)
  }

  test("it is refused at the start, before anything arrives") {
    val life = new QueryLife(spark, t, u)
    rows(life)
    life.run(life.changes("SELECT id FROM t WHERE v > 1"))
    refused(life, "CHANGELOG_QUERY_CHANGED") {
      life.start(life.changes("SELECT id FROM t WHERE v > 2")).stop()
    }
  }

  test("while no batch is done the query may change") {
    val life = new QueryLife(spark, t, u)
    life.add(t, "+I 1 a 1 1 2020-01-01T00:00:00")
    intercept[Exception] {
      life.run(life.changes("SELECT g, sum(1 DIV (v - 1)) FROM t GROUP BY g"))
    }
    val sql = "SELECT k, sum(v) FROM t GROUP BY k"
    life.run(life.changes(sql))
    assert(life.result == life.expected(sql))
  }

  test("a record that can't be read is told") {
    val life = new QueryLife(spark, t, u)
    rows(life)
    life.run(life.changes("SELECT id FROM t"))
    val record = life.checkpoint.resolve("changelog/plan.json")
    for (text <- Seq("", "{", "[1]", "{\"version\": 2}")) {
      Files.writeString(record, text)
      val message = refused(life, "CHANGELOG_QUERY_RECORD_DAMAGED") {
        life.run(life.changes("SELECT id FROM t"))
      }
      assert(message.contains("plan.json"), message)
    }
  }

  test("a record that is missing is told, whichever query is started") {
    val pairs = Seq(
      "SELECT id, v FROM t WHERE v > 1" -> "SELECT id, v FROM t WHERE v > 2",
      "SELECT g, sum(v) FROM t WHERE k > 1 GROUP BY g" ->
        "SELECT g, sum(v) FROM t WHERE k > 2 GROUP BY g")
    for ((first, second) <- pairs) {
      val life = new QueryLife(spark, t, u)
      rows(life)
      life.run(life.changes(first))
      life.add(t, "+I 3 a 1 8 2020-01-01T00:05:00")
      val record = life.checkpoint.resolve("changelog/plan.json")
      val text = Files.readString(record)
      Files.delete(record)
      for (sql <- Seq(second, first)) {
        val message = refused(life, "CHANGELOG_QUERY_RECORD_MISSING")(life.run(life.changes(sql)))
        assert(message.contains(record.toString) && message.contains("new checkpoint"), message)
      }
      Files.writeString(record, text)
      life.run(life.changes(first))
      assert(life.result == life.expected(first))
    }
  }

  test("another version of Spark is told if the query is another one with it") {
    val sql = "SELECT id, v FROM t WHERE v > 1"
    val life = new QueryLife(spark, t, u)
    rows(life)
    life.run(life.changes(sql))
    val record = life.checkpoint.resolve("changelog/plan.json")
    val written = QueryRecord.fromJson(Files.readString(record))
    Files.deleteIfExists(record.resolveSibling(".plan.json.crc"))
    Files.writeString(record, written.copy(spark = "4.0.0").toJson)
    val message = refused(life, "CHANGELOG_QUERY_CHANGED") {
      life.run(life.changes("SELECT id, v FROM t WHERE v > 2"))
    }
    assert(message.contains(s"Spark: was 4.0.0, is $SPARK_VERSION"), message)
    // the same query goes on, and its record tells of this version from then on
    life.add(t, "+I 3 a 1 8 2020-01-01T00:05:00")
    life.run(life.changes(sql))
    assert(QueryRecord.fromJson(Files.readString(record)) == written)
  }

  test("a byte of the record that is another one is told, or says nothing") {
    val life = new QueryLife(spark, t, u)
    rows(life)
    life.run(life.changes("SELECT id, date_trunc('DAY', at) FROM t WHERE v > 1"))
    val bytes = Files.readAllBytes(life.checkpoint.resolve("changelog/plan.json"))
    val written = QueryRecord.fromJson(new String(bytes, UTF_8))
    for (place <- bytes.indices; bit <- Seq(0, 2)) {
      val damaged = bytes.updated(place, (bytes(place) ^ (1 << bit)).toByte)
      Try(QueryRecord.fromJson(new String(damaged, UTF_8)))
        .foreach(read => assert(read == written, s"byte $place"))
    }
  }

  /** Lets the operators that a checkpoint has written down be others. */
  private def rewriteOperators(life: QueryLife)(change: String => String): Unit = {
    val record = life.checkpoint.resolve("changelog/plan.json")
    val was = life.record
    val operators = was.operators.map { operator =>
      operator.copy(node = change(operator.node), tables = operator.tables.map(change))
    }
    assert(operators != was.operators, operators)
    Files.deleteIfExists(record.resolveSibling(".plan.json.crc"))
    Files.writeString(record, was.copy(operators = operators).toJson)
    ()
  }

  test("the same query, whose operators would keep something else") {
    val sql = "SELECT g, sum(v) FROM t GROUP BY g"
    val life = new QueryLife(spark, t, u)
    rows(life)
    life.run(life.changes(sql))
    rewriteOperators(life)(_.replace("[s1.g:string] [", "[s1.g:string, s1.k:int] ["))
    life.add(t, "+I 3 a 1 8 2020-01-01T00:05:00")
    val message = refused(life, "CHANGELOG_QUERY_PLANNED_OTHERWISE") {
      life.run(life.changes(sql))
    }
    assert(message.contains("was 0: n1: Aggregate [s1.g:string, s1.k:int]"), message)
  }

  test("the same query, the same operators of which would keep rows and have kept buffers") {
    val sql =
      "SELECT g, collect_list(v) FROM t GROUP BY g, session_window(at, '10 minutes')"
    val life = new QueryLife(spark, t, u)
    rows(life)
    life.run(life.changes(sql))
    rewriteOperators(life)(
      _.replace("rows: (g, row) → count", "sessions: (g, session_window) → buffers"))
    life.add(t, "+I 3 a 1 8 2020-01-01T00:05:00")
    val message = refused(life, "CHANGELOG_QUERY_PLANNED_OTHERWISE") {
      life.run(life.changes(sql))
    }
    assert(message.contains("sessions: (g, session_window) → buffers"), message)
    assert(message.contains("rows: (g, row) → count"), message)
  }
}
