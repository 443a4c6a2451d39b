// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing._

/** Aggregates that are computed anew, for a reader that takes what is final only. */
class ReplayClosedSuite extends AnyFunSuite with TimedChanges {
  private val columns = "op STRING, ts TIMESTAMP, g STRING, n INT"

  private def running(sql: String, conf: Map[String, String] = Map.empty)(
      body: (RawStream, RunningChanges) => Unit): Unit =
    runningClosed(columns, sql, conf)(body)

  test("a window over rows that change is emitted once, when it is closed") {
    val sql = "SELECT date_format(window.start, 'mm') AS m, collect_list(n) AS ns, " +
      "count(DISTINCT n) AS d FROM t GROUP BY window(ts, '5 minutes')"
    running(sql) { (stream, query) =>
      stream.add(
        s"insert ${minute(1)} a 3",
        s"insert ${minute(2)} b 1",
        s"insert ${minute(2)} b 1",
        s"insert ${minute(7)} a 9")
      assert(query.next() == Nil)
      stream.add(
        s"delete ${minute(1)} a 3",
        s"insert ${minute(3)} a 2",
        s"delete ${minute(7)} a 9")
      assert(query.next() == Nil)
      stream.add(s"insert ${minute(21)} a 5")
      assert(query.next() == Seq("00 ArraySeq(1, 1, 2) 2 insert"), "an empty window is none")
      assert(stateRowsNow(query) == 1)
      stream.add(s"insert ${minute(4)} a 3", s"delete ${minute(3)} a 2")
      assert(query.next() == Nil)
      assert(droppedRows(query) == 2)
    }
  }

  test("a session is emitted once, when the watermark has passed its end") {
    val sql = "SELECT g, date_format(session_window.start, 'mm') AS m, count(*) AS c " +
      "FROM t GROUP BY g, session_window(ts, '5 minutes')"
    running(sql) { (stream, query) =>
      stream.add(
        s"insert ${minute(1)} a 1",
        s"insert ${minute(8)} a 1",
        s"insert ${minute(8)} b 1")
      assert(query.next() == Nil)
      // merges both of a, and begins where the one of b ends
      stream.add(s"insert ${minute(4)} a 1", s"insert ${minute(13)} b 1")
      assert(query.next() == Nil)
      // the watermark goes to 00:13, where the one of a ends
      stream.add(s"insert ${minute(23)} c 1")
      assert(query.next() == Seq("a 01 3 insert"))
      stream.add(
        s"insert ${minute(13)} a 1",
        s"delete ${minute(13)} b 1",
        s"insert ${minute(14)} a 1")
      // what has ended is final, but that of b has not
      assert(query.next() == Nil)
      assert(droppedRows(query) == 1)
      stream.add(s"insert ${minute(60)} c 1")
      assert(query.next() == Seq("a 14 1 insert", "b 08 1 insert", "c 23 1 insert"))
      assert(stateRowsNow(query) == 1)
    }
  }

  test("sessions of all rows, and of sessions") {
    running("SELECT count(*) AS c FROM t GROUP BY session_window(ts, '5 minutes')") {
      (stream, query) =>
        stream.add(s"insert ${minute(1)} a 1", s"insert ${minute(3)} b 1")
        query.next()
        stream.add(s"insert ${minute(30)} a 1")
        assert(query.next() == Seq("2 insert"))
    }
    val sql = "SELECT count(*) AS sessions, sum(c) AS c FROM (" +
      "SELECT g, session_window, count(*) AS c FROM t GROUP BY g, session_window(ts, '5 minutes')) " +
      "GROUP BY session_window"
    running(sql) { (stream, query) =>
      stream.add(
        s"insert ${minute(1)} a 1",
        s"insert ${minute(3)} a 1",
        s"insert ${minute(4)} b 1")
      query.next()
      stream.add(s"insert ${minute(30)} a 1")
      val first = query.next()
      stream.add(s"insert ${minute(50)} a 1")
      assert(first ++ query.next() == Seq("2 3 insert", "1 1 insert"))
    }
  }

  private val queries = Seq(
    "sessions" -> ("SELECT g, session_window.start AS s, session_window.end AS e, count(*) AS c, " +
      "sort_array(collect_list(n)) AS ns FROM t GROUP BY g, session_window(ts, '4 minutes')"),
    "sessions of uneven gaps" -> ("SELECT g, session_window.start AS s, session_window.end AS e, " +
      "sum(n) AS c FROM t GROUP BY g, " +
      "session_window(ts, CASE WHEN n > 5 THEN '2 minutes' ELSE '9 minutes' END)"),
    "windows" -> ("SELECT g, window.start AS s, window.end AS e, median(n) AS m, " +
      "sort_array(collect_list(n)) AS ns FROM t GROUP BY g, window(ts, '10 minutes', '5 minutes')"))

  for {
    (provider, conf) <- Seq(
      "in memory" -> Map.empty[String, String],
      "RocksDB" -> Variant.RocksDB)
    (name, sql) <- queries
  } test(s"at every watermark, all closed $name are as in batch, $provider") {
    val random = new Random(name.hashCode + provider.hashCode)
    running(sql, conf) { (stream, query) =>
      val rows = mutable.ArrayBuffer.empty[(Int, String, Int)]
      val emitted = mutable.ArrayBuffer.empty[String]
      var (now, newest) = (10, 0)
      for (_ <- 1 to 12) {
        now += random.nextInt(14)
        val watermark = newest - 10
        val changes = Seq.fill(1 + random.nextInt(8)) {
          val inTime = rows.filter(_._1 > watermark)
          if (inTime.nonEmpty && random.nextInt(4) == 0) {
            val gone = inTime(random.nextInt(inTime.size))
            rows -= gone
            ("delete", gone)
          } else {
            val come = (
              math.max(math.max(watermark + 1, 0), now - random.nextInt(14)),
              "ab".charAt(random.nextInt(2)).toString,
              random.nextInt(10))
            rows += come
            ("insert", come)
          }
        }
        stream.add(changes.map { case (op, (at, g, n)) => s"$op ${minute(at)} $g $n" }: _*)
        emitted ++= query.next()
        newest = math.max(newest, changes.map(_._2._1).max)
        val expected = closed(sql, rows.toSeq, newest - 10)
        assert(emitted.sorted == expected.map(row => s"$row insert").sorted, s"at ${newest - 10}")
      }
      assert(emitted.nonEmpty)
    }
  }

  /** What batch Spark gives for the groups that end no later than the watermark. */
  private def closed(sql: String, rows: Seq[(Int, String, Int)], watermark: Int): Seq[String] = {
    val values = rows.map { case (at, g, n) => s"(TIMESTAMP '${minute(at)}', '$g', $n)" }
    val table =
      if (values.isEmpty) "SELECT ts, g, n FROM VALUES (NULL, '', 0) AS v(ts, g, n) LIMIT 0"
      else s"SELECT * FROM VALUES ${values.mkString(", ")} AS v(ts, g, n)"
    val end = minute(math.max(watermark, 0))
    // Spark would push a filter below the aggregate, where sessions are not merged yet
    spark
      .sql(s"WITH t AS ($table) SELECT *, e <= TIMESTAMP '$end' AS is_closed FROM ($sql)")
      .collect()
      .filter(_.getAs[Boolean]("is_closed"))
      .map(row => TextChangelog.format(Row.fromSeq(row.toSeq.init)))
      .toSeq
  }
}
