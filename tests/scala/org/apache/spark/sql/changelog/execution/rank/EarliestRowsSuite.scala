// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** The first row by event time, for a reader that takes what is final only. */
class EarliestRowsSuite extends AnyFunSuite with TimedChanges {

  private def first(partition: String): String =
    s"""SELECT g, n, date_format(ts, 'mm') AS m FROM (
       |  SELECT *, row_number() OVER ($partition ORDER BY ts) AS r FROM t) WHERE r = 1""".stripMargin

  private def running(sql: String, conf: Map[String, String] = Map.empty)(
      body: (RawStream, RunningChanges) => Unit): Unit =
    runningClosed("ts TIMESTAMP, g STRING, n INT", sql, conf)(body)

  test("a row is emitted once, when the watermark has passed it, and no later one is") {
    running(first("PARTITION BY g")) { (stream, query) =>
      stream.add(s"${minute(5)} a 1", s"${minute(7)} a 2", s"${minute(9)} b 3")
      assert(query.next() == Nil)
      // an earlier one, and a tie, which the other columns settle
      stream.add(s"${minute(3)} a 4", s"${minute(9)} b 2")
      assert(query.next() == Nil)
      stream.add(s"${minute(17)} c 5")
      assert(query.next() == Seq("a 4 03 insert"))
      stream.add(s"${minute(6)} d 6", s"${minute(8)} a 7")
      assert(query.next() == Nil)
      assert(droppedRows(query) == 1, "in time is later than 00:07")
      stream.add(s"${minute(40)} e 8")
      assert(query.next() == Seq("b 2 09 insert", "c 5 17 insert"))
      assert(stateRowsNow(query) == 4, "three that were emitted, and one that was not")
    }
  }

  test("without a partition, and by window, which bounds what is remembered") {
    running(first("")) { (stream, query) =>
      stream.add(s"${minute(5)} a 1", s"${minute(4)} b 2")
      query.next()
      stream.add(s"${minute(30)} c 3")
      assert(query.next() == Seq("b 2 04 insert"))
      stream.add(s"${minute(60)} d 4")
      assert(query.next() == Nil)
    }
    running(first("PARTITION BY window(ts, '5 minutes')")) { (stream, query) =>
      stream.add(s"${minute(4)} a 1", s"${minute(3)} b 2", s"${minute(6)} b 3")
      query.next()
      stream.add(s"${minute(30)} c 4")
      assert(query.next() == Seq("b 2 03 insert", "b 3 06 insert"))
      assert(stateRowsNow(query) == 1)
    }
  }

  for ((provider, conf) <- Seq(
      "in memory" -> Map.empty[String, String],
      "RocksDB" -> Variant.RocksDB)) {
    test(s"at every watermark, rows are those of batch that it has passed, $provider") {
      val random = new Random(provider.hashCode)
      running(first("PARTITION BY g"), conf) { (stream, query) =>
        val accepted = mutable.ArrayBuffer.empty[(Int, Int, Int)]
        val emitted = mutable.ArrayBuffer.empty[String]
        var (now, watermark) = (10, 0)
        for (_ <- 1 to 10) {
          now += random.nextInt(8)
          val rows = Seq.fill(4) {
            (math.max(0, now - random.nextInt(16)), random.nextInt(12), random.nextInt(9))
          }
          stream.add(rows.map { case (at, g, n) => s"${minute(at)} $g $n" }: _*)
          emitted ++= query.next()
          accepted ++= rows.filter(row => watermark == 0 || row._1 > watermark)
          watermark = math.max(watermark, rows.map(_._1).max - 10)
          val expected = accepted
            .groupBy(_._2)
            .values
            .map(_.min)
            .collect { case (at, g, n) if at <= watermark => f"$g $n ${at % 60}%02d insert" }
          assert(emitted.sorted == expected.toSeq.sorted, s"at $watermark")
        }
        assert(emitted.size > 3)
      }
    }
  }
}
