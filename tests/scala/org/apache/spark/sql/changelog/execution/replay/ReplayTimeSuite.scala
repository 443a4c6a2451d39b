// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** What watermarks and age do to the rows of partitions. */
class ReplayTimeSuite extends AnyFunSuite with TimedChanges {
  private val columns = "op STRING, ts TIMESTAMP, g STRING, n INT"

  private def running(sql: String, conf: Map[String, String] = Map.empty)(
      body: (RawStream, RunningChanges) => Unit): Unit = running(columns, sql, conf)(body)

  test("rows of a window that is over go, and late ones are dropped and counted") {
    val sql = "SELECT date_format(window.start, 'mm') AS m, median(n) AS x " +
      "FROM t GROUP BY window(ts, '5 minutes')"
    running(sql) { (stream, query) =>
      stream.add(s"insert ${minute(1)} a 1", s"insert ${minute(2)} a 4")
      assert(query.next() == Seq("00 2.5 insert"))
      stream.add(s"insert ${minute(30)} a 1")
      assert(query.next() == Seq("30 1.0 insert"))
      stream.add(s"insert ${minute(31)} a 2")
      assert(query.next() == Seq("30 1.0 delete", "30 1.5 insert"))
      assert(stateRows(query) == 2)
      stream.add(s"insert ${minute(3)} a 9")
      assert(query.next() == Nil)
      assert(droppedRows(query) == 1)
    }
  }

  test("rows of a session that has ended go, and those that could reach it are dropped") {
    val sql = "SELECT g, count(*) AS c FROM t GROUP BY g, session_window(ts, '5 minutes')"
    running(sql) { (stream, query) =>
      stream.add(s"insert ${minute(1)} a 1", s"insert ${minute(50)} a 1")
      assert(query.next() == Seq("a 1 insert", "a 1 insert"))
      stream.add(s"insert ${minute(51)} a 1")
      assert(query.next() == Seq("a 1 delete", "a 2 insert"))
      // the first session is over, and what it gave stays
      assert(stateRows(query) == 2)
      stream.add(
        s"insert ${minute(2)} a 1",
        s"delete ${minute(1)} a 1",
        s"insert ${minute(40)} a 1")
      assert(query.next() == Nil)
      assert(droppedRows(query) == 3)
      // the watermark is at 00:41
      stream.add(s"insert ${minute(45)} a 1")
      assert(query.next() == Seq("a 2 delete", "a 3 insert"))
      stream.add(s"insert ${minute(56)} a 1")
      assert(query.next() == Seq("a 3 delete", "a 4 insert"))
      stream.add(s"insert ${minute(57)} a 1")
      assert(query.next() == Seq("a 4 delete", "a 5 insert"))
      // the watermark is at 00:46, but the session is open
      stream.add(s"delete ${minute(45)} a 1", s"insert ${minute(44)} a 1")
      assert(query.next() == Seq("a 4 insert", "a 5 delete"))
      assert(droppedRows(query) == 1)
    }
  }

  test("a partition nothing changes is forgotten as a whole") {
    val ttl = "spark.sql.changelog.state.ttl"
    spark.conf.set(ttl, "1ms")
    try
      running("SELECT sort_array(collect_list(n)) AS ns FROM t GROUP BY g") { (stream, query) =>
        stream.add(s"insert ${minute(1)} a 1", s"insert ${minute(1)} a 2")
        assert(query.next() == Seq("ArraySeq(1, 2) insert"))
        query.pass(20)
        stream.add(s"insert ${minute(1)} a 3")
        assert(query.next() == Seq("ArraySeq(3) insert"))
      }
    finally spark.conf.unset(ttl)
  }
}
