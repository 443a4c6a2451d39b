// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** What watermarks and age do to ranks. */
class RankTimeSuite extends AnyFunSuite with TimedChanges {
  private val columns = "op STRING, ts TIMESTAMP, g STRING, n INT"

  private def running(sql: String, conf: Map[String, String] = Map.empty)(
      body: (RawStream, RunningChanges) => Unit): Unit = running(columns, sql, conf)(body)

  private def best(from: String): String =
    "SELECT date_format(window.start, 'mm') AS m, g, n FROM (" +
      s"SELECT *, row_number() OVER (PARTITION BY window ORDER BY n DESC) AS r FROM ($from)) " +
      "WHERE r = 1"

  test("ranks of a window that is over go, and late rows are dropped and counted") {
    running(best("SELECT window(ts, '5 minutes') AS window, g, n FROM t")) { (stream, query) =>
      stream.add(s"insert ${minute(1)} a 1", s"insert ${minute(2)} b 4")
      assert(query.next() == Seq("00 b 4 insert"))
      stream.add(s"insert ${minute(30)} a 1")
      assert(query.next() == Seq("30 a 1 insert"))
      stream.add(s"insert ${minute(31)} a 2")
      assert(query.next() == Seq("30 a 1 delete", "30 a 2 insert"))
      assert(stateRows(query) == 1)
      stream.add(s"insert ${minute(3)} a 9")
      assert(query.next() == Nil)
      assert(droppedRows(query) == 1)
    }
  }

  test("the best count per window") {
    val counts = "SELECT window, g, count(*) AS n FROM t GROUP BY window(ts, '5 minutes'), g"
    running(best(counts)) { (stream, query) =>
      stream.add(
        s"insert ${minute(1)} a 1",
        s"insert ${minute(2)} b 4",
        s"insert ${minute(2)} b 4")
      assert(query.next() == Seq("00 b 2 insert"))
      stream.add(s"delete ${minute(2)} b 4", s"delete ${minute(2)} b 4")
      assert(query.next() == Seq("00 a 1 insert", "00 b 2 delete"))
      stream.add(s"insert ${minute(30)} a 1")
      assert(query.next() == Seq("30 a 1 insert"))
      stream.add(s"insert ${minute(31)} a 1")
      query.next()
      assert(stateRows(query) == 2)
    }
  }

  test("a partition nothing changes is forgotten") {
    val ttl = "spark.sql.changelog.state.ttl"
    spark.conf.set(ttl, "1ms")
    try
      running(
        "SELECT g, n FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY n) AS r FROM t) " +
          "WHERE r <= 1") { (stream, query) =>
        stream.add(s"insert ${minute(1)} a 1", s"insert ${minute(1)} a 2")
        assert(query.next() == Seq("a 1 insert"))
        query.pass(20)
        stream.add(s"insert ${minute(1)} a 3")
        assert(query.next() == Seq("a 3 insert"))
      }
    finally spark.conf.unset(ttl)
  }

  test("the newest row per key, counted per window") {
    val sql =
      """SELECT date_format(window.start, 'mm') AS m, count(DISTINCT g) AS c FROM (
        |  SELECT *, row_number() OVER (PARTITION BY n ORDER BY ts DESC) AS r FROM t)
        |WHERE r = 1 GROUP BY window(ts, '5 minutes')""".stripMargin
    running(sql) { (stream, query) =>
      stream.add(
        s"insert ${minute(1)} a 1",
        s"insert ${minute(2)} b 2",
        s"insert ${minute(2)} b 3")
      assert(query.next() == Seq("00 2 insert"))
      stream.add(s"insert ${minute(6)} a 1")
      assert(query.next() == Seq("00 1 insert", "00 2 delete", "05 1 insert"))
      stream.add(s"insert ${minute(3)} a 1")
      assert(query.next() == Nil)
    }
  }
}
