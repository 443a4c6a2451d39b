// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import java.io.File

import scala.collection.mutable
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing._

/** Groups by event time: what is late, what is over, and what is emitted when. */
class ChangelogAggregateTimeSuite extends AnyFunSuite with ChangelogSession {

  private def minute(number: Int): String = f"2026-01-01T00:$number%02d:00"

  /** A running query over a stream of changes whose watermark follows ten minutes behind. */
  private class Running(
      sql: String,
      mode: String = "retract",
      inserts: Boolean = false,
      arguments: String = "",
      checkpoint: File = QuickFileSystem.temporaryDirectory()) {
    private val stream =
      new RawStream(spark, "changes", "op STRING, ts TIMESTAMP, g STRING, n INT")
    stream.toDF.withWatermark("ts", "10 minutes").createOrReplaceTempView("timed")
    private val table: String =
      if (inserts) "TABLE(SELECT ts, g, n FROM timed)"
      else s"TABLE(timed), change_type => 'op'$arguments"
    private def start() = new RunningChanges(
      spark.sql(s"""SELECT * FROM to_changelog(TABLE(
           |  WITH t AS (SELECT * FROM from_changelog($table)) $sql), mode => '$mode')""".stripMargin),
      checkpoint)
    private var running = start()

    def next(rows: String*): Seq[String] = {
      stream.add(rows: _*)
      running
        .next()
        .map { change =>
          val words = change.split(" ")
          (words.last +: words.init).mkString(" ")
        }
        .sorted
    }

    def restart(): Unit = {
      running.stop()
      running = start()
    }

    def stop(): Unit = running.stop()

    def droppedRows: Long = running.progress.stateOperators.map(_.numRowsDroppedByWatermark).sum

    def stateRows: Long = spark.read.format("statestore").load(checkpoint.getPath).count()

    /** State rows of all operators. */
    def allStateRows: Long = running.progress.stateOperators.map(_.numRowsTotal).sum
  }

  private def running[T](query: Running)(body: Running => T): T =
    try body(query)
    finally query.stop()

  // the start as text is no key, so that updates come as a delete and an insert
  private val perWindow =
    "SELECT date_format(window.start, 'mm') AS m, count(*) AS c FROM t GROUP BY window(ts, '5 minutes')"

  test(
    "a window is shown early, refined, closed by the watermark, and late changes are counted") {
    running(new Running(perWindow)) { query =>
      assert(
        query.next(s"insert ${minute(1)} a 1", s"insert ${minute(7)} a 1") ==
          Seq("insert 00 1", "insert 05 1"))
      assert(
        query.next(s"insert ${minute(2)} b 1", s"delete ${minute(7)} a 1") ==
          Seq("delete 00 1", "delete 05 1", "insert 00 2"))
      // the watermark goes to 00:15 afterwards
      assert(query.next(s"insert ${minute(25)} a 1") == Seq("insert 25 1"))
      assert(query.stateRows == 2)
      // not late yet: a batch's changes are late by the watermark of the batch before
      assert(
        query.next(s"insert ${minute(3)} c 1") ==
          Seq("delete 00 2", "insert 00 3"))
      assert(query.stateRows == 1)
      assert(query.next(s"insert ${minute(4)} c 1", s"delete ${minute(1)} a 1") == Nil)
      assert(query.droppedRows == 1, "one group, whose two changes were combined")
      assert(query.stateRows == 1)
    }
  }

  test("all tables of a closed window go") {
    val conf = "spark.sql.changelog.aggregate.headSize"
    spark.conf.set(conf, "1")
    val sql =
      """SELECT date_format(window.start, 'mm') AS m, min(n), max_by(g, n), count(DISTINCT g),
        |sum(DISTINCT n) FROM t GROUP BY window(ts, '5 minutes')""".stripMargin
    try
      running(new Running(sql)) { query =>
        assert(
          query.next((1 to 8).map(n => s"insert ${minute(1)} g$n $n"): _*) ==
            Seq("insert 00 1 g8 8 36"))
        assert(query.next(s"insert ${minute(30)} a 1") == Seq("insert 30 1 a 1 1"))
        assert(query.next(s"insert ${minute(31)} a 1") == Nil)
        // per operator: the group and its values
        assert(query.allStateRows == 1 + 2)
      }
    finally spark.conf.unset(conf)
  }

  test("an append query emits a window once, when it is closed") {
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    val sql = perWindow.replace("count(*) AS c", "count(*) AS c, max(n), count(DISTINCT g)")
    try
      for (inserts <- Seq(true, false)) running(new Running(sql, "append", inserts)) { query =>
        assert(query.next(s"insert ${minute(1)} a 1", s"insert ${minute(2)} b 2") == Nil)
        assert(query.next(s"insert ${minute(16)} a 1") == Seq("insert 00 2 2 2"))
        query.restart()
        assert(query.next(s"insert ${minute(17)} a 2", s"insert ${minute(1)} late 9") == Nil)
        assert(query.next(s"insert ${minute(50)} a 1") == Seq("insert 15 2 2 1"))
      }
    finally spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
  }

  test("changes are taken back before a window of an append query is closed") {
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    try
      running(new Running(perWindow, "append")) { query =>
        query.next(
          s"insert ${minute(1)} a 1",
          s"insert ${minute(2)} b 2",
          s"insert ${minute(7)} b 2")
        assert(query.next(s"delete ${minute(2)} b 2", s"delete ${minute(7)} b 2") == Nil)
        assert(query.next(s"insert ${minute(40)} a 1") == Seq("insert 00 1"))
      }
    finally spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
  }

  test("distinct values are counted per window over the newest row per key") {
    val sql = perWindow.replace("count(*) AS c", "count(DISTINCT g) AS c")
    val newest = ", key => array('n'), input => 'upsert', sequence_by => array('ts')"
    running(new Running(sql, arguments = newest)) { query =>
      assert(
        query.next(
          s"insert ${minute(1)} a 1",
          s"insert ${minute(2)} a 2",
          s"insert ${minute(3)} b 3") ==
          Seq("insert 00 2"))
      // one a stays, an older row changes nothing, and a newer one moves to the next window
      assert(
        query.next(
          s"insert ${minute(6)} a 1",
          s"insert ${minute(1)} c 2",
          s"insert ${minute(7)} a 3") ==
          Seq("delete 00 2", "insert 00 1", "insert 05 1"))
      assert(
        query.next(s"insert ${minute(8)} d 2") ==
          Seq("delete 00 1", "delete 05 1", "insert 05 2"))
    }
  }

  test("windows overlap, and grow") {
    val hopping =
      perWindow.replace("window(ts, '5 minutes')", "window(ts, '10 minutes', '5 minutes')")
    running(new Running(hopping)) { query =>
      assert(query.next(s"insert ${minute(7)} a 1") == Seq("insert 00 1", "insert 05 1"))
      assert(
        query.next(s"delete ${minute(7)} a 1", s"insert ${minute(12)} a 1") ==
          Seq("delete 00 1", "insert 10 1"))
    }
    // what other systems call cumulating windows: growing steps within one larger window
    val growing =
      """SELECT date_format(window.start, 'mm') AS m, step, count(*) FROM (
        |  SELECT window(ts, '15 minutes'), ts, explode(sequence(5, 15, 5)) AS step FROM t)
        |WHERE ts < window.start + make_dt_interval(0, 0, step) GROUP BY window, step""".stripMargin
    running(new Running(growing)) { query =>
      assert(query.next(s"insert ${minute(7)} a 1") == Seq("insert 00 10 1", "insert 00 15 1"))
      assert(
        query.next(s"insert ${minute(2)} a 1") == Seq(
          "delete 00 10 1",
          "delete 00 15 1",
          "insert 00 10 2",
          "insert 00 15 2",
          "insert 00 5 1"))
    }
  }

  test("random changes in any order give what batch gives for those that are in time") {
    for (seed <- 1 to 4) {
      val random = new Random(seed)
      val table = new RowMultiset
      val accepted = mutable.ArrayBuffer.empty[(Int, Int)]
      var (watermark, newest) = (0, 0)
      running(new Running(perWindow.replace("count(*) AS c", "sum(n) AS c, count(DISTINCT n)"))) {
        query =>
          for (batch <- 1 to 8) {
            val now = batch * 5
            val rows = Seq.fill(6)(math.max(0, now - random.nextInt(20)) -> random.nextInt(3))
            query
              .next(rows.map { case (at, n) => s"insert ${minute(at)} g $n" }: _*)
              .foreach { change =>
                val Array(kind, values) = change.split(" ", 2)
                if (Set("insert", "update_postimage")(kind)) table.add(Row(values), 1)
                else table.add(Row(values), -1)
              }
            // a batch is late by the watermark the batch before it ran with
            accepted ++= rows.filter { case (at, _) => at / 5 * 5 + 5 > watermark }
            watermark = math.max(watermark, newest - 10)
            newest = math.max(newest, rows.map(_._1).max)
            val expected = new RowMultiset
            accepted.groupBy(_._1 / 5 * 5).foreach { case (start, values) =>
              val ns = values.map(_._2)
              expected.add(Row(f"$start%02d ${ns.sum} ${ns.distinct.size}"), 1)
            }
            assert(table.toString == expected.toString, s"seed $seed, batch $batch")
          }
      }
    }
  }
}
