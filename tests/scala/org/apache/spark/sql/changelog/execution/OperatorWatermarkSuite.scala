// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.types.{StructType, TimestampType}

import org.apache.spark.sql.changelog.testing._

/** Operators above joins, whose rows come and go when the watermark has passed their event times. */
class OperatorWatermarkSuite extends AnyFunSuite with TimedChanges {
  import OperatorWatermarkSuite._

  for {
    query <- Queries if query.inBatches || All
    (name, conf) <- if (query eq Queries.head) Variant.Providers else Variant.Providers.take(1)
  } test(s"${query.name} gives what batch gives after each batch, $name") {
    val settings = ChangelogSession.Quick ++ conf
    runningIn("retract", s"op STRING, $Columns", Sides + query.sql, settings) {
      (stream, running) =>
        val table = mutable.Map.empty[String, Int]
        feed(stream, changing = true) { (rows, clue) =>
          running.next().foreach { change =>
            val (row, kind) = change.splitAt(change.lastIndexOf(' '))
            val sign = if (Set(" insert", " update_postimage")(kind)) 1 else -1
            table(row) = table.getOrElse(row, 0) + sign
          }
          val copies = table.filter(_._2 != 0).toSeq.flatMap { case (row, n) =>
            Seq.fill(n)(row)
          }
          assert(copies.sorted == expected(query, rows), clue)
        }
        assert(stateRows(running) < 20, "the watermark bounds the state")
    }
  }

  for (query <- Queries if query.onceClosed || All)
    test(s"${query.name} gives what batch gives once it is passed") {
      val settings = ChangelogSession.Quick
      runningClosed(s"op STRING, $Columns", Sides + query.sql, settings) { (stream, running) =>
        feed(stream, changing = true) { (rows, clue) =>
          running.next()
          val passed = s"${query.passed} <= TIMESTAMP '${minute(rows.map(_.at).max - 10)}'"
          val insert = " insert"
          assert(running.all.forall(_.endsWith(insert)))
          assert(
            running.all.map(_.stripSuffix(insert)).sorted == expected(query, rows, passed),
            clue)
        }
        assert(running.all.size > 2)
      }
    }

  test("windows over joins are those of Spark's own joins") {
    for (joinType <- Seq("LEFT") ++ (if (All) Seq("INNER") else Nil)) {
      val sql = s"""SELECT window(l.ts, '5 minutes').end AS e, l.k, count(*) AS c, count(r.v) AS m
           |FROM l $joinType JOIN r ON $Within GROUP BY window(l.ts, '5 minutes'), l.k""".stripMargin
      runningClosed(Columns, Sides + sql, ChangelogSession.Quick) { (stream, running) =>
        val again = new RawStream(spark, "again", Columns)
        val timed = again.toDF.withWatermark("ts", "10 minutes")
        def side(name: String) = timed.where(s"side = '$name'")
        val stock = new RunningChanges(
          side("l")
            .as("l")
            .join(side("r").as("r"), expr(Within), joinType)
            .groupBy(expr("window(l.ts, '5 minutes')"), expr("l.k"))
            .agg(expr("count(*) AS c"), expr("count(r.v) AS m"))
            .selectExpr("window.end", "k", "c", "m", "'insert'"),
          QuickFileSystem.temporaryDirectory())
        try {
          feed(stream, changing = false, again) { (_, _) =>
            running.next()
            stock.next()
          }
          assert(stock.all.size > 5)
          assert(running.all.sorted == stock.all.sorted, joinType)
        } finally stock.stop()
      }
    }
  }

  /** Adds random rows that are in time, and in the end some that let the watermark pass all. */
  private def feed(stream: RawStream, changing: Boolean, others: RawStream*)(
      check: (Seq[Event], String) => Unit): Unit = {
    val random = new Random(3)
    val rows = mutable.ArrayBuffer.empty[Event]
    def add(changes: Seq[(String, Event)]): Unit = (stream +: others).foreach { each =>
      each.add(changes.map { case (op, event) =>
        if (changing) s"$op ${event.text}" else event.text
      }: _*)
    }
    var now = 20
    for (batch <- 1 to Steps) {
      now += 2 + random.nextInt(8)
      add(Seq.fill(8) {
        val inTime = rows.filter(_.at > now - 9)
        if (changing && inTime.nonEmpty && random.nextInt(4) == 0) {
          val gone = inTime(random.nextInt(inTime.size))
          rows -= gone
          "delete" -> gone
        } else {
          val side = if (random.nextBoolean()) "l" else "r"
          rows += Event(side, now - random.nextInt(9), random.nextInt(3), random.nextInt(20))
          "insert" -> rows.last
        }
      })
      check(rows.toSeq, s"batch $batch")
    }
    for (later <- Seq(100, 200)) {
      Seq("l", "r").foreach(side => rows += Event(side, now + later, 9, 0))
      add(rows.takeRight(2).map("insert" -> _).toSeq)
      check(rows.toSeq, "in the end")
    }
  }

  private def expected(query: Cascade, rows: Seq[Event], passed: String = "true"): Seq[String] = {
    val table = rows.map { row =>
      Row(row.side, TextChangelog.value(minute(row.at), TimestampType), row.k, row.v)
    }
    spark
      .createDataFrame(table.asJava, StructType.fromDDL(Columns))
      .createOrReplaceTempView("in_time")
    val result = spark.sql(s"WITH t AS (SELECT * FROM in_time) $Sides ${query.sql}").where(passed)
    result.collect().map(TextChangelog.format).sorted.toSeq
  }
}

private object OperatorWatermarkSuite {

  /**
   * @param passed
   *   what the watermark must have passed before a row is given, of the columns of the result
   * @param inBatches
   *   whether it is always compared after each batch
   * @param onceClosed
   *   whether it is always compared in mode append
   */
  private case class Cascade(
      name: String,
      sql: String,
      passed: String,
      inBatches: Boolean = true,
      onceClosed: Boolean = true)

  private case class Event(side: String, at: Int, k: Int, v: Int) {
    def text: String = f"$side 2026-01-01T${at / 60}%02d:${at % 60}%02d:00 $k $v"
  }

  /** Whether to take more time. */
  private val All = sys.env.contains("CHANGELOG_PROPERTY_SEEDS")

  private val Steps = 6

  private val Columns = "side STRING, ts TIMESTAMP, k INT, v INT"

  /** Spark asks for a side alone before it looks how late it is. */
  private def side(name: String) =
    s"SELECT ts, k, v FROM t WHERE side = '$name' OR ts < TIMESTAMP '1900-01-01'"

  private val Sides = s", l AS (${side("l")}), r AS (${side("r")}) "

  private val Within = "l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 20 MINUTES"

  private def joined(joinType: String) =
    s"(SELECT l.ts, l.k, l.v, r.ts AS rt, r.v AS rv FROM l $joinType JOIN r ON $Within)"

  /** The moment after the last one at which a right row may come. */
  private def after(time: String) = s"$time + INTERVAL '1200.001' SECOND"

  private def counts(joinType: String) =
    s"""SELECT window(ts, '5 minutes').end AS e, k, count(*) AS c, count(rv) AS m, sum(rv) AS s
       |FROM ${joined(joinType)} GROUP BY window(ts, '5 minutes'), k""".stripMargin

  private def ranked(order: String) =
    s"""SELECT w.end AS e, k, v, rv FROM (
       |  SELECT *, row_number() OVER (PARTITION BY w, k ORDER BY $order) AS rn
       |  FROM (SELECT *, window(ts, '5 minutes') AS w FROM ${joined("LEFT")}))
       |WHERE rn <= 2""".stripMargin

  private val Queries = Seq(
    Cascade("counts of windows over a left join", counts("LEFT"), after("e")),
    Cascade(
      "counts of windows over an anti join",
      s"""SELECT window(ts, '5 minutes').end AS e, k, count(*) AS c
         |FROM (SELECT * FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE $Within AND r.v > l.v))
         |GROUP BY window(ts, '5 minutes'), k""".stripMargin,
      after("e"),
      inBatches = false),
    Cascade(
      "a join over a left join",
      s"""SELECT x.ts, x.v, x.rv, r.v AS other FROM ${joined("LEFT")} x LEFT JOIN r
         |ON x.k = r.k AND r.ts BETWEEN x.ts - INTERVAL 2 MINUTES AND x.ts""".stripMargin,
      after("ts"),
      onceClosed = false),
    Cascade(
      "counts of windows over a join over a left join",
      s"""SELECT window(ts, '5 minutes').end AS e, count(*) AS c, sum(other) AS s FROM (
         |  SELECT x.ts, r.v AS other FROM ${joined("LEFT")} x LEFT JOIN r
         |  ON x.k = r.k AND r.ts BETWEEN x.ts AND x.ts + INTERVAL 5 MINUTES)
         |GROUP BY window(ts, '5 minutes')""".stripMargin,
      s"${after("e")} + INTERVAL '300.001' SECOND",
      inBatches = false),
    Cascade(
      "the best of each window over a left join",
      ranked("v DESC, rv"),
      after("e"),
      onceClosed = false),
    Cascade(
      "the last of each window over a left join",
      ranked("ts DESC, v, rv DESC"),
      after("e"),
      inBatches = false,
      onceClosed = false))
}
