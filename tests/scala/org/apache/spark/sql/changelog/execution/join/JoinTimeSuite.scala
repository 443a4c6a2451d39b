// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** What watermarks do to the rows of joins. */
class JoinTimeSuite extends AnyFunSuite with TimedChanges {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.MostlyInterpreted)

  /** Runs a query over `l` and `r`. */
  private def running(sql: String, conf: Map[String, String] = Map.empty)(
      body: (RawStream, RunningChanges) => Unit): Unit =
    running(
      "op STRING, side STRING, ts TIMESTAMP, k INT, v INT",
      """, l AS (SELECT ts, k, v FROM t WHERE side = 'l'),
        |r AS (SELECT ts, k, v FROM t WHERE side = 'r') """.stripMargin + sql,
      conf)(body)

  private val within = "l.k = r.k AND l.ts BETWEEN r.ts AND r.ts + INTERVAL 5 MINUTES"

  test("rows that no further row can meet go, and late rows are dropped and counted") {
    running(s"SELECT l.v AS lv, r.v AS rv FROM l JOIN r ON $within") { (stream, query) =>
      stream.add(s"insert r ${minute(1)} 1 10", s"insert l ${minute(3)} 1 20")
      assert(query.next() == Seq("20 10 insert"))
      // in time, so it is taken back
      stream.add(s"delete l ${minute(3)} 1 20", s"insert l ${minute(4)} 1 21")
      assert(query.next() == Seq("20 10 delete", "21 10 insert"))
      stream.add(s"insert r ${minute(40)} 1 11")
      assert(query.next() == Nil)
      stream.add(s"insert r ${minute(41)} 2 12")
      assert(query.next() == Nil)
      assert(stateRows(query) == 2)
      stream.add(s"delete l ${minute(4)} 1 21", s"insert l ${minute(5)} 1 22")
      assert(query.next() == Nil)
      assert(droppedRows(query) == 2)
      assert(stateRows(query) == 2)
    }
  }

  test("a row without a match has come out at once, and stays when its rows go") {
    running(s"SELECT l.v AS lv, r.v AS rv FROM l LEFT JOIN r ON $within") { (stream, query) =>
      stream.add(s"insert l ${minute(3)} 1 20", s"insert l ${minute(3)} 2 30")
      assert(query.next() == Seq("20 NULL insert", "30 NULL insert"))
      stream.add(s"insert r ${minute(1)} 1 10")
      assert(query.next() == Seq("20 10 insert", "20 NULL delete"))
      stream.add(s"insert r ${minute(50)} 9 11")
      query.next()
      stream.add(s"insert r ${minute(51)} 9 11")
      assert(query.next() == Nil)
      assert(stateRows(query) == 2)
    }
  }

  test("a window in the join key bounds both sides") {
    def counts(side: String) =
      s"(SELECT window(ts, '5 minutes') AS w, k, count(*) AS c FROM $side GROUP BY 1, 2)"
    running(
      "SELECT date_format(a.w.start, 'mm') AS m, a.k, a.c, b.c AS d " +
        s"FROM ${counts("l")} a FULL JOIN ${counts("r")} b ON a.w = b.w AND a.k = b.k") {
      (stream, query) =>
        stream.add(s"insert l ${minute(1)} 1 1", s"insert r ${minute(2)} 1 1")
        assert(query.next() == Seq("00 1 1 1 insert"))
        stream.add(s"delete r ${minute(2)} 1 1")
        assert(query.next() == Seq("00 1 1 1 delete", "00 1 1 NULL insert"))
        stream.add(s"insert l ${minute(31)} 1 1")
        query.next()
        stream.add(s"insert l ${minute(32)} 1 1")
        assert(query.next() == Seq("30 1 1 NULL delete", "30 1 2 NULL insert"))
        // the two counts, and the row of the join
        assert(stateRows(query) == 2)
    }
  }

  test("without event times set against each other all rows stay") {
    running("SELECT l.v AS lv, r.v AS rv FROM l JOIN r ON l.k = r.k") { (stream, query) =>
      stream.add(s"insert r ${minute(1)} 1 10")
      query.next()
      stream.add(s"insert r ${minute(50)} 2 10")
      query.next()
      stream.add(s"insert l ${minute(3)} 1 20")
      assert(query.next() == Seq("20 10 insert"))
      assert(droppedRows(query) == 0)
    }
  }

  test("of two event times that one bounds the rows which the condition is about") {
    val pairs =
      """(SELECT l.ts, r.ts AS rt, l.k, l.v FROM l JOIN r ON l.k = r.k
        |AND r.ts BETWEEN l.ts - INTERVAL 10 MINUTES AND l.ts + INTERVAL 20 MINUTES)""".stripMargin
    running(s"""SELECT x.v, y.v AS other, minute(x.ts) AS at, minute(y.ts) AS met
        |FROM $pairs x JOIN $pairs y
        |ON x.k = y.k AND y.rt BETWEEN x.rt AND x.rt + INTERVAL 1 MINUTE
        |AND x.v < y.v""".stripMargin) { (stream, query) =>
      stream.add(s"insert l ${minute(10)} 1 1", s"insert r ${minute(30)} 1 2")
      query.next()
      stream.add(s"insert r ${minute(45)} 9 9")
      query.next()
      stream.add(s"insert r ${minute(46)} 9 9")
      assert(query.next() == Nil)
      // of the same right row as the pair of the first batch
      stream.add(s"insert l ${minute(38)} 1 5")
      assert(query.next() == Seq("1 5 10 38 insert"))
    }
  }

  test("a condition on another time than the event time does not bound a side") {
    running("""SELECT l.v AS lv, r.v AS rv, minute(l.ts) AS at
        |FROM (SELECT *, ts + make_interval(0, 0, 0, 0, 0, v) AS until FROM l) l JOIN r
        |ON l.k = r.k AND r.ts BETWEEN l.until - INTERVAL 9 MINUTES AND l.until""".stripMargin) {
      (stream, query) =>
        stream.add(s"insert l ${minute(3)} 1 60")
        query.next()
        stream.add(s"insert r ${minute(50)} 2 10")
        query.next()
        stream.add(s"insert r ${minute(51)} 2 10")
        query.next()
        // an hour after the left row
        stream.add(s"insert r ${minute(60)} 1 20")
        assert(query.next() == Seq("60 20 3 insert"))
    }
  }

  for {
    (name, conf) <- Seq("in memory" -> Map.empty[String, String], "RocksDB" -> Variant.RocksDB)
    joinType <- Seq("INNER", "LEFT", "FULL")
  } test(s"rows that are never late join as in batch, $joinType, $name") {
    val around =
      "l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL 5 MINUTES AND r.ts + INTERVAL 3 MINUTES"
    for (seed <- 1 to 2) {
      val random = new Random(seed)
      running(s"SELECT l.v AS lv, r.v AS rv FROM l $joinType JOIN r ON $around", conf) {
        (stream, query) =>
          val rows = mutable.ArrayBuffer.empty[(String, Int, Int, Int)]
          val table = mutable.Map.empty[String, Int]
          var now = 10
          for (batch <- 1 to 12) {
            now += random.nextInt(12)
            val changes = Seq.fill(1 + random.nextInt(12)) {
              // of this batch's watermark or later
              val inTime = rows.filter(_._2 > now - 9)
              if (inTime.nonEmpty && random.nextInt(3) == 0) {
                val gone = inTime(random.nextInt(inTime.size))
                rows -= gone
                ("delete", gone)
              } else {
                val side = if (random.nextBoolean()) "l" else "r"
                val come = (side, now - random.nextInt(9), random.nextInt(3), random.nextInt(100))
                rows += come
                ("insert", come)
              }
            }
            stream.add(changes.map { case (op, (side, at, k, v)) =>
              s"$op $side ${minute(at)} $k $v"
            }: _*)
            query.next().foreach { change =>
              val (row, kind) = change.splitAt(change.lastIndexOf(' '))
              val sign = if (Set(" insert", " update_postimage")(kind)) 1 else -1
              table(row) = table.getOrElse(row, 0) + sign
            }
            assert(
              table.filter(_._2 != 0).toMap == expected(rows.toSeq, joinType),
              s"seed $seed, batch $batch")
          }
          assert(stateRows(query) < rows.size, s"seed $seed")
      }
    }
  }

  private def expected(rows: Seq[(String, Int, Int, Int)], joinType: String): Map[String, Int] = {
    val (left, right) = rows.partition(_._1 == "l")
    def meets(l: (String, Int, Int, Int), r: (String, Int, Int, Int)) =
      l._3 == r._3 && l._2 >= r._2 - 5 && l._2 <= r._2 + 3
    val pairs = for (l <- left; r <- right if meets(l, r)) yield s"${l._4} ${r._4}"
    val aloneLeft = left.filterNot(l => right.exists(meets(l, _))).map(l => s"${l._4} NULL")
    val aloneRight = right.filterNot(r => left.exists(meets(_, r))).map(r => s"NULL ${r._4}")
    val all = joinType match {
      case "INNER" => pairs
      case "LEFT" => pairs ++ aloneLeft
      case "FULL" => pairs ++ aloneLeft ++ aloneRight
    }
    all.groupBy(identity).map { case (row, copies) => row -> copies.size }
  }
}
