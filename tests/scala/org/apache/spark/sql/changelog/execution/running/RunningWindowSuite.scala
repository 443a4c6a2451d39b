// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.running

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing._

/** Window functions in the order of event time, for a reader that takes what is final only. */
class RunningWindowSuite extends AnyFunSuite with TimedChanges {
  private val columns = "ts TIMESTAMP, g STRING, n INT"

  private def running(sql: String, conf: Map[String, String] = Map.empty)(
      body: (RawStream, RunningChanges) => Unit): Unit =
    runningClosed(columns, sql, conf)(body)

  test("a row comes once the watermark has passed it, and is not kept") {
    val sql = "SELECT g, n, sum(n) OVER (PARTITION BY g ORDER BY ts) AS s, " +
      "row_number() OVER (PARTITION BY g ORDER BY ts) AS r FROM t"
    running(sql) { (stream, query) =>
      stream.add(s"${minute(5)} a 1", s"${minute(1)} a 10", s"${minute(2)} b 7")
      assert(query.next() == Nil)
      assert(stateRowsNow(query) == 3)
      stream.add(s"${minute(3)} a 100", s"NULL a 5", s"${minute(14)} b 1")
      // the watermark is at 00:04
      assert(query.next() == Seq("a 10 10 1 insert", "a 100 110 2 insert", "b 7 7 1 insert"))
      // two rows, and the buffers of two partitions
      assert(stateRowsNow(query) == 4)
      stream.add(s"${minute(4)} a 1000", s"${minute(25)} c 1")
      assert(query.next() == Seq("a 1 111 3 insert", "b 1 8 2 insert"))
      assert(droppedRows(query) == 1)
      assert(stateRowsNow(query) == 3)
    }
  }

  test("rows with one time are peers to a RANGE, and in the order of their columns to ROWS") {
    val frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    val sql =
      s"SELECT n, sum(n) OVER (ORDER BY ts) AS s, sum(n) OVER (ORDER BY ts $frame) AS r, " +
        "rank() OVER (ORDER BY ts) AS place FROM t"
    running(sql) { (stream, query) =>
      stream.add(
        s"${minute(1)} a 3",
        s"${minute(1)} a 2",
        s"${minute(1)} a 2",
        s"${minute(2)} a 1")
      query.next()
      stream.add(s"${minute(30)} a 1")
      assert(
        query.next() ==
          Seq("1 8 8 4 insert", "2 7 2 1 insert", "2 7 4 1 insert", "3 7 7 1 insert"))
    }
  }

  // Spark 4.1 has no FILTER with a window
  private val some =
    if (ChangelogSession.isSpark41) "avg(IF(n > 3, n, NULL))"
    else "avg(n) FILTER (WHERE n > 3)"

  private val queries = Seq(
    "by rows" -> ("SELECT ts, g, n, sum(n) OVER w AS a, count(*) OVER w AS b, " +
      s"$some OVER w AS c, row_number() OVER w AS d FROM t WINDOW w AS " +
      "(PARTITION BY g ORDER BY ts, n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"),
    "by times" -> ("SELECT ts, g, n, max(n) OVER w AS a, max_by(g, n) OVER w AS b, " +
      "dense_rank() OVER w AS c, rank() OVER w AS d, round(stddev(n) OVER w, 6) AS e FROM t WINDOW w AS " +
      "(PARTITION BY g ORDER BY ts)"))

  for ((name, sql) <- queries; (provider, conf) <- Share.ofWays(Variant.Providers, name))
    test(s"at every watermark, passed rows are as in batch, $name, restarted, $provider") {
      val random = new Random((name + provider).hashCode)
      // ties of ROWS are settled by the columns: batch is told so
      running(sql.replace("ORDER BY ts, n", "ORDER BY ts"), conf) { (stream, query) =>
        checkBatches(sql, stream, query, random)
      }
    }

  /** Stops at any boundary: also between a batch of rows and the one without that follows it. */
  private def checkBatches(
      sql: String,
      stream: RawStream,
      query: RunningChanges,
      random: Random): Unit = {
    val rows = mutable.ArrayBuffer.empty[(Int, String, Int)]
    var (now, newest) = (10, 0)
    for (batch <- 1 to 10) {
      now += random.nextInt(14)
      val earliest = math.max(newest - 9, 0)
      val come = Seq.fill(1 + random.nextInt(8)) {
        (
          math.max(earliest, now - random.nextInt(14)),
          "ab".charAt(random.nextInt(2)).toString,
          random.nextInt(10))
      }
      rows ++= come
      stream.add(come.map { case (at, g, n) => s"${minute(at)} $g $n" }: _*)
      query.next()
      newest = math.max(newest, come.map(_._1).max)
      val watermark = query.query.lastProgress.eventTime.get("watermark")
      val expected = passed(sql, rows.toSeq, watermark)
      assert(query.all.sorted == expected.map(row => s"$row insert").sorted, s"batch $batch")
      random.nextInt(4) match {
        case 0 =>
        case choice =>
          val emptyBatches = "spark.sql.streaming.noDataMicroBatches.enabled"
          spark.conf.set(emptyBatches, random.nextBoolean().toString)
          query.restart(repeats = choice == 1)
      }
    }
    assert(query.all.size > 10)
  }

  /** What batch Spark gives for the rows that the watermark has passed. */
  private def passed(
      sql: String,
      rows: Seq[(Int, String, Int)],
      watermark: String): Seq[String] = {
    val values = rows.map { case (at, g, n) => s"(TIMESTAMP '${minute(at)}', '$g', $n)" }
    spark
      .sql(
        s"WITH t AS (SELECT * FROM VALUES ${values.mkString(", ")} AS v(ts, g, n)) " +
          s"SELECT * FROM ($sql) WHERE ts <= TIMESTAMP '$watermark'")
      .collect()
      .map(row => TextChangelog.format(Row.fromSeq(row.toSeq)))
      .toSeq
  }
}
