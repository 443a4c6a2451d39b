// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.session

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** Sessions of rows that only come, of which buffers are kept. */
class ChangelogSessionSuite extends AnyFunSuite with StateRecords with TimedChanges {
  private lazy val oracle = new Oracle(spark)
  private val feed = Feed("t", "g STRING, at TIMESTAMP, n INT", insertOnly = true)

  private def row(group: String, minute: Int, n: Any): String =
    f"+I $group 2024-01-01T10:$minute%02d:00 $n"

  test("a session is one record, with the buffers of all functions") {
    val record = "concat_ws(' ', key.g, minute(key.session_window.start), " +
      "minute(key.session_window.end), to_json(value))"
    val sql = "SELECT g, session_window, count(*), max(n) FILTER (WHERE n < 5) FROM t " +
      "GROUP BY g, session_window(at, '10 minutes')"
    assert(
      records(sql, feed, record)(
        Seq(row("a", 1, 1), row("a", 3, 4), row("a", 1, 2), row("a", 40, 7), row("NULL", 2, 1)),
        Seq(row("a", 12, 3)),
        Seq(row("a", 30, 3), row("a", 22, 3))) == Seq(
        Set(
          """a 1 13 {"count(1)":3,"max(n) where (n < 5)":4}""",
          """a 40 50 {"count(1)":1}""",
          """2 12 {"count(1)":1,"max(n) where (n < 5)":1}"""),
        Set(
          """a 1 22 {"count(1)":4,"max(n) where (n < 5)":4}""",
          """a 40 50 {"count(1)":1}""",
          """2 12 {"count(1)":1,"max(n) where (n < 5)":1}"""),
        Set(
          """a 1 50 {"count(1)":7,"max(n) where (n < 5)":4}""",
          """2 12 {"count(1)":1,"max(n) where (n < 5)":1}""")))
  }

  test("sessions alone are kept with nothing") {
    val sql = "SELECT g, session_window FROM t GROUP BY g, session_window(at, '10 minutes')"
    assert(
      records(sql, feed, "to_json(value)")(Seq(row("a", 1, 1), row("a", 3, 4))) ==
        Seq(Set("""{"nothing":0}""")))
  }

  private val queries = Seq(
    "g, session_window, count(*) c, sum(n), avg(n), min(n), max(n)" -> "'4 minutes'",
    "session_window, g, percentile(n, 0.5), sort_array(collect_list(n)), stddev(n)" ->
      "'3 minutes'",
    "g, session_window.end - session_window.start AS length, sum(n) FILTER (WHERE n > 2) AS s" ->
      "CASE WHEN n > 4 THEN '7 minutes' ELSE '2 minutes' END",
    "g, session_window" -> "'5 minutes'",
    "session_window, sum(n + 1), approx_count_distinct(n), max_by(n, at)" -> "'2 minutes'")

  for {
    ((select, gap), number) <- queries.zipWithIndex
    conf <- Seq(Map.empty[String, String], Variant.RocksDB)
  } test(s"random rows make the sessions of batch, query $number, ${conf.size} settings") {
    val random = new Random(number)
    val groups = if (select.startsWith("g") || select.contains(" g,")) "g, " else ""
    val sql = s"SELECT $select FROM t GROUP BY ${groups}session_window(at, $gap)"
    val steps = Seq.fill(5) {
      val rows = Seq.fill(random.nextInt(6)) {
        val n: Any = if (random.nextInt(8) == 0) "NULL" else random.nextInt(8)
        row(Seq("a", "b", "NULL")(random.nextInt(3)), random.nextInt(60), n)
      }
      Step(feed, rows: _*)
    }
    oracle.check(Program(Seq(feed), sql, steps), Variant(restart = conf.nonEmpty, conf = conf))
  }

  test("a late row counts in a session that is open, and is dropped elsewhere") {
    val sql = "SELECT g, count(*) AS c FROM t GROUP BY g, session_window(ts, '5 minutes')"
    runningIn("retract", "ts TIMESTAMP, g STRING, n INT", sql, Map.empty) { (stream, query) =>
      stream.add(s"${minute(1)} a 1", s"${minute(38)} a 1", s"${minute(50)} a 1")
      assert(query.next() == Seq("a 1 insert", "a 1 insert", "a 1 insert"))
      stream.add(s"${minute(42)} a 1")
      // the watermark was at 00:40 when this batch began
      assert(query.next() == Seq("a 1 delete", "a 2 insert"))
      assert(stateRows(query) == 2)
      // late are 00:39, in an open session, and 00:30 and 00:02, in none
      stream.add(s"${minute(39)} a 1", s"${minute(30)} a 1", s"${minute(2)} a 1")
      assert(query.next() == Seq("a 2 delete", "a 3 insert"))
      assert(droppedRows(query) == 2)
    }
  }

  test("of late and timely rows of one batch only those in time make a session") {
    val sql = "SELECT count(*) AS c FROM t GROUP BY session_window(ts, '5 minutes')"
    runningIn("retract", "ts TIMESTAMP, g STRING, n INT", sql, Map.empty) { (stream, query) =>
      stream.add(s"${minute(30)} a 1")
      assert(query.next() == Seq("1 insert"))
      stream.add(s"${minute(31)} a 1")
      assert(query.next() == Seq("1 delete", "2 insert"))
      stream.add(s"${minute(19)} a 1", s"${minute(22)} a 1")
      assert(query.next() == Seq("1 insert"))
      assert(droppedRows(query) == 1)
    }
  }

  test("closed sessions are emitted once, and forgotten") {
    val sql = "SELECT g, minute(session_window.start) AS m, count(*) AS c FROM t " +
      "GROUP BY g, session_window(ts, '5 minutes')"
    runningClosed("ts TIMESTAMP, g STRING, n INT", sql, Map.empty) { (stream, query) =>
      val emitted = mutable.ArrayBuffer.empty[String]
      stream.add(s"${minute(1)} a 1", s"${minute(4)} a 1", s"${minute(20)} b 1")
      emitted ++= query.next()
      stream.add(s"${minute(22)} b 1", s"${minute(38)} a 1")
      emitted ++= query.next()
      stream.add(s"${minute(39)} a 1")
      emitted ++= query.next()
      assert(emitted.sorted == Seq("a 1 2 insert", "b 20 2 insert"))
      assert(stateRowsNow(query) == 1)
    }
  }
}
