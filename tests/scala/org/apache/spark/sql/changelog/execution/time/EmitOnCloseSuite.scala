// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.types.{StructType, TimestampType}
import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.testing._

/** Queries in mode append whose rows change: each row comes once, when the watermark has passed it. */
class EmitOnCloseSuite extends AnyFunSuite with TimedChanges {
  import EmitOnCloseSuite._

  private val inMemory = "in memory" -> Map.empty[String, String]
  private val providers =
    Seq(inMemory, "pages" -> Variant.Paged, "RocksDB" -> Variant.RocksDB)

  for {
    query <- Share.of(Queries, oneIn = 2)
    changing <- Seq(true, false)
    if changing || !query.onlyComes && (query.everyProvider || Seeds > 1)
    kind = if (changing) "rows that change" else "rows that only come"
    (name, conf) <-
      if (query.everyProvider && changing) Share.ofWays(providers, query.name)
      else Seq(inMemory)
  } test(s"${query.name} over $kind gives what batch gives once it is passed, $name") {
    for (seed <- 1 to Seeds) withClue(s"seed $seed ")(run(query, changing, seed, conf))
  }

  for {
    query <- Share.of(Queries, oneIn = 2)
    changing <- Share.of(Seq(true, false), oneIn = 2)
  } test(s"${query.name} is corrected for a time after it is passed, changing: $changing") {
    for (seed <- 1 to Seeds) withClue(s"seed $seed ") {
      run(query, changing, seed, Map.empty, corrections = 15)
    }
  }

  /** @param corrections in minutes; 0 for mode append */
  private def run(
      query: ClosedQuery,
      changing: Boolean,
      seed: Int,
      conf: Map[String, String],
      corrections: Int = 0): Unit = {
    val random = new Random(seed)
    val schema = if (changing) s"op STRING, $Columns" else Columns
    // two partitions, and nothing compiled for so few rows
    val quick = ChangelogSession.Quick - "spark.sql.shuffle.partitions"
    val (mode, emit) =
      if (corrections == 0) ("append", "on close")
      else ("retract", s"on close, then corrections for $corrections minutes")
    val always = Map("spark.sql.streaming.noDataMicroBatches.enabled" -> "true")
    runningIn(mode, schema, Sides + query.sql, quick ++ conf ++ always, emit) {
      (stream, running) =>
        val rows = mutable.ArrayBuffer.empty[Event]
        var (now, latest) = (20, 0)
        // the latest of the batch before the last one: what is late below its watermark is too late now
        var (settled, last) = (0, 0)
        def add(changes: Seq[(String, Event)]): Unit =
          stream.add(changes.map { case (op, event) =>
            if (changing) s"$op ${event.text}" else event.text
          }: _*)
        for (batch <- 1 to Steps) {
          now += 3 + random.nextInt(9)
          if (random.nextInt(5) > 0) {
            // of this batch's watermark or later
            val changes = Seq.fill(1 + random.nextInt(12 + corrections)) {
              val inTime = rows.filter(_.at > now - 9 - corrections)
              if (changing && inTime.nonEmpty && random.nextInt(3) == 0) {
                val gone = inTime(random.nextInt(inTime.size))
                rows -= gone
                "delete" -> gone
              } else {
                val come = event(random, now - random.nextInt(9 + corrections))
                rows += come
                latest = math.max(latest, come.at)
                "insert" -> come
              }
            }
            val tooLate = settled - 20 - corrections
            val late = if (tooLate >= 0) Seq("insert" -> event(random, tooLate)) else Nil
            settled = last
            last = latest
            add(changes ++ late)
          }
          running.next()
          // again, from where it stood, or as it is
          random.nextInt(4) match {
            case 0 if rows.nonEmpty => running.restart(repeats = true)
            case 1 => running.restart()
            case _ =>
          }
          running.next()
          check(query, rows.toSeq, latest - 10, running, s"batch $batch", corrections > 0)
        }
        now += 60
        add(Seq("insert" -> Event("x", now, 0, 0)))
        running.next()
        check(query, rows.toSeq, now - 10, running, "in the end", corrections > 0)
        assert(running.all.nonEmpty, "nothing came")
        val held = running.query.lastProgress.stateOperators.filter { operator =>
          operator.operatorName == "changelogEmit"
        }
        assert(held.isEmpty == (query.closesItself && corrections == 0))
        // the ways to times that may still come
        assert(held.forall(_.numRowsTotal <= 6 * spark.sessionState.conf.numShufflePartitions))
    }
  }

  /** Holds what came against the rows of batch Spark that the watermark has passed. */
  private def check(
      query: ClosedQuery,
      rows: Seq[Event],
      watermark: Int,
      running: RunningChanges,
      clue: String,
      isCorrected: Boolean): Unit = {
    val counts = mutable.Map.empty[String, Int].withDefaultValue(0)
    running.all.foreach { change =>
      val (row, kind) = change.splitAt(change.lastIndexOf(' '))
      assert(isCorrected || kind == " insert")
      counts(row) += (if (kind == " insert" || kind == " update_postimage") 1 else -1)
    }
    val shown = counts.toSeq.flatMap { case (row, count) =>
      assert(count >= 0, s"$clue, $row")
      Seq.fill(count)(row)
    }
    assert(
      shown.sorted == expected(query, rows, math.max(0, watermark)).sorted,
      s"$clue, watermark ${minute(math.max(0, watermark))}")
  }

  private def expected(query: ClosedQuery, rows: Seq[Event], watermark: Int): Seq[String] = {
    batchTable(rows).createOrReplaceTempView("in_time")
    val result = spark.sql(s"WITH t AS (SELECT * FROM in_time) $Sides ${query.sql}")
    val passed = result.where(s"${query.passed} <= TIMESTAMP '${minute(watermark)}'")
    passed.collect().map(TextChangelog.format).toSeq
  }

  private def batchTable(rows: Seq[Event]): DataFrame = spark.createDataFrame(
    rows.map { row =>
      Row(row.side, TextChangelog.value(minute(row.at), TimestampType), row.k, row.v)
    }.asJava,
    StructType.fromDDL(Columns))

  private def event(random: Random, at: Int): Event =
    Event(if (random.nextBoolean()) "l" else "r", at, random.nextInt(3), random.nextInt(20))

  test("a left outer join gives what Spark's own gives") {
    val random = new Random(7)
    val query = Queries.find(_.name == "a left join").get
    runningClosed(Columns, Sides + query.sql, Map.empty) { (stream, running) =>
      // a stream forgets what one query has read
      val again = new RawStream(spark, "again", Columns)
      val timed = again.toDF.withWatermark("ts", "10 minutes")
      def side(name: String) = timed.where(s"side = '$name'")
      val stock = new RunningChanges(
        side("l")
          .as("l")
          .join(side("r").as("r"), expr(Within), "leftOuter")
          .selectExpr("l.ts", "l.k", "l.v", "r.v AS rv", "'insert'"),
        QuickFileSystem.temporaryDirectory())
      try {
        var now = 20
        (1 to 10).foreach { _ =>
          now += random.nextInt(8)
          val events = Seq.fill(6) {
            event(random, now - random.nextInt(9)).copy(k = random.nextInt(6)).text
          }
          Seq(stream, again).foreach(_.add(events: _*))
          running.next()
          stock.next()
        }
        val last = Seq(Event("l", now + 60, 8, 0), Event("r", now + 60, 9, 0))
        Seq(stream, again).foreach(_.add(last.map(_.text): _*))
        running.next()
        stock.next()
        assert(running.all.size > 30 && running.all.exists(_.contains("NULL")))
        assert(running.all.sorted == stock.all.sorted)
      } finally stock.stop()
    }
  }

  test("what changes after the watermark has passed it is counted, and nothing comes twice") {
    runningClosed(s"op STRING, $Columns", s"$Sides SELECT ts, k, v FROM l", Map.empty) {
      (stream, running) =>
        stream.add(s"insert l ${minute(1)} 1 10", s"insert l ${minute(12)} 2 20")
        assert(running.next() == Seq(s"${shown(1)} 1 10 insert"))
        stream.add(s"delete l ${minute(1)} 1 10", s"insert l ${minute(2)} 1 11")
        assert(running.next() == Nil)
        assert(droppedRows(running) == 2)
        // as is what was taken back in time
        stream.add(s"delete l ${minute(12)} 2 20", s"insert l ${minute(30)} 3 30")
        assert(running.next() == Nil)
        stream.add(s"insert l ${minute(41)} 3 30")
        assert(running.next() == Seq(s"${shown(30)} 3 30 insert"))
    }
  }

  test("rows without an event time are counted and not kept, and such before 1970 are passed") {
    runningClosed(s"op STRING, $Columns", s"$Sides SELECT ts, k, v FROM l", Map.empty) {
      (stream, running) =>
        stream.add("insert l NULL 1 10", "insert l 1950-01-01T00:00:00 2 20", "delete l NULL 1 9")
        stream.add(s"insert l ${minute(30)} 3 30")
        assert(running.next() == Seq("1950-01-01T00:00 2 20 insert"))
        val counted = running.query.recentProgress.flatMap(_.stateOperators).map { operator =>
          operator.customMetrics.get("numRowsWithoutTime").longValue
        }
        assert(counted.sum == 1)
        assert(stateRowsNow(running) > 0)
    }
  }

  test("a row that is taken back before it comes is not given") {
    runningClosed(s"op STRING, $Columns", s"$Sides SELECT ts, k, v FROM l", Map.empty) {
      (stream, running) =>
        stream.add(s"insert l ${minute(30)} 1 10", s"delete l ${minute(31)} 2 20")
        assert(running.next() == Nil)
        running.restart()
        stream.add(s"insert l ${minute(31)} 2 20", s"delete l ${minute(32)} 3 30")
        assert(running.next() == Nil)
        // the insert of the last one never comes
        stream.add(s"insert l ${minute(60)} 4 40")
        assert(running.next() == Seq(s"${shown(30)} 1 10 insert"))
        assert(stateRowsNow(running) > 0)
        stream.add(s"insert l ${minute(90)} 5 50")
        assert(running.next() == Seq(s"${shown(60)} 4 40 insert"))
    }
  }

  test("no batch is run before the watermark has come to the next row") {
    runningClosed(s"op STRING, $Columns", s"$Sides SELECT ts, k, v FROM l", Map.empty) {
      (stream, running) =>
        stream.add(s"insert l ${minute(30)} 1 10")
        running.next()
        stream.add(s"insert l ${minute(35)} 1 10")
        running.next()
        assert(running.query.lastProgress.batchId == 1)
        stream.add(s"insert l ${minute(40)} 1 10")
        assert(running.next() == Seq(s"${shown(30)} 1 10 insert"))
        assert(running.query.lastProgress.batchId == 3)
    }
  }

  test("late rows correct what has been emitted, for as long as is said, and are then counted") {
    val sql = "SELECT window.end AS w, count(*) AS c FROM t GROUP BY window(ts, '5 minutes')"
    val always = Map("spark.sql.streaming.noDataMicroBatches.enabled" -> "true")
    val emit = "on close, then corrections for 20 minutes"
    runningIn("retract", "ts TIMESTAMP", sql, always, emit) { (stream, running) =>
      stream.add(minute(1), minute(6))
      assert(running.next() == Nil)
      stream.add(minute(15))
      assert(running.next() == Seq(s"${shown(5)} 1 insert"))
      stream.add(minute(2), minute(7))
      assert(
        running.next() ==
          Seq(s"${shown(5)} 1 delete", s"${shown(5)} 2 insert"))
      running.restart()
      stream.add(minute(36))
      assert(running.next() == Seq(s"${shown(10)} 2 insert", s"${shown(20)} 1 insert"))
      stream.add(minute(3), minute(8))
      // the window until 00:05 is over, 30 minutes before 00:36
      assert(
        running.next() ==
          Seq(s"${shown(10)} 2 delete", s"${shown(10)} 3 insert"))
      assert(droppedRows(running) == 1)
    }
  }

  for {
    (sql, changing) <- Seq(
      "SELECT ts, k FROM l ORDER BY ts, k DESC" -> false,
      "SELECT ts, k FROM l ORDER BY ts, k DESC" -> true,
      "SELECT window.end AS ts, count(*) AS k FROM l GROUP BY window(ts, '5 minutes') ORDER BY ts" -> false)
  } test(s"rows come in the order of their event time, changing: $changing, $sql") {
    val random = new Random(3)
    val (columns, kind) = if (changing) (s"op STRING, $Columns", "insert ") else (Columns, "")
    val several = ChangelogSession.Quick - "spark.sql.shuffle.partitions"
    runningClosed(columns, Sides + sql, several) { (stream, running) =>
      val rows = (1 to 8).flatMap { batch =>
        val come = Seq.fill(12)(event(random, 20 + 5 * batch - random.nextInt(9)))
        stream.add(come.map(event => kind + event.text): _*)
        running.next()
        if (random.nextInt(3) == 0) running.restart(repeats = random.nextBoolean())
        come
      }
      stream.add(kind + Event("r", 200, 0, 0).text)
      running.next()
      batchTable(rows).createOrReplaceTempView("in_time")
      val expected = spark.sql(s"WITH t AS (SELECT * FROM in_time) $Sides $sql").collect()
      assert(expected.length > 5)
      assert(running.all == expected.map(row => s"${TextChangelog.format(row)} insert").toSeq)
    }
  }

  private def shown(number: Int): String = minute(number).stripSuffix(":00")
}

object EmitOnCloseSuite {

  /**
   * @param passed
   *   what the watermark must have passed before a row is given, of the columns of the result
   * @param onlyComes
   *   whether the result only comes if the table does, and so is given at once
   * @param closesItself
   *   whether another operator holds the rows back
   */
  private case class ClosedQuery(
      name: String,
      sql: String,
      passed: String,
      onlyComes: Boolean = false,
      closesItself: Boolean = false,
      everyProvider: Boolean = false)

  private case class Event(side: String, at: Int, k: Int, v: Int) {
    def text: String = f"$side 2026-01-01T${at / 60}%02d:${at % 60}%02d:00 $k $v"
  }

  private val Seeds = sys.env.get("CHANGELOG_PROPERTY_SEEDS").fold(1)(_.toInt)
  private val Steps = if (Seeds == 1) 5 else 12

  private val Columns = "side STRING, ts TIMESTAMP, k INT, v INT"

  /** Spark asks for a side alone before it looks how late it is. */
  private def side(name: String) =
    s"SELECT ts, k, v FROM t WHERE side = '$name' OR ts < TIMESTAMP '1900-01-01'"

  private val Sides = s", l AS (${side("l")}), r AS (${side("r")}) "

  private val Within = "l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 4 MINUTES"

  /** The moment after the last one at which a right row may come. */
  private def after(time: String) = s"$time + INTERVAL '240.001' SECOND"

  private def windowed(side: String, window: String = "'5 minutes'") =
    s"(SELECT window(ts, $window) AS w, ts, k, v FROM $side)"

  private def top(count: Int, side: String = "l", window: String = "'5 minutes'") =
    s"""(SELECT w, k, v, rn FROM (
       |  SELECT *, row_number() OVER (PARTITION BY w ORDER BY v DESC, k) AS rn
       |  FROM ${windowed(side, window)}) WHERE rn <= $count)""".stripMargin

  private def counts(side: String) =
    s"(SELECT window(ts, '5 minutes') AS w, k, count(*) AS c FROM $side GROUP BY 1, 2)"

  private val Queries = Seq(
    ClosedQuery("a table", "SELECT ts, k, v FROM l", "ts", onlyComes = true),
    ClosedQuery(
      "the best of each window",
      s"SELECT w.end AS e, k, v, rn FROM ${top(2)}",
      "e",
      everyProvider = true),
    ClosedQuery(
      "the best of sliding windows",
      s"SELECT w.end AS e, k, v, rn FROM ${top(1, window = "'6 minutes', '2 minutes'")}",
      "e"),
    ClosedQuery(
      "the last row of each window and key",
      s"""SELECT w.end AS e, k, v FROM (
         |  SELECT *, row_number() OVER (PARTITION BY w, k ORDER BY ts DESC, v) AS rn
         |  FROM ${windowed("l")}) WHERE rn = 1""".stripMargin,
      "e"),
    ClosedQuery(
      "a window function",
      s"SELECT w.end AS e, k, v, sum(v) OVER (PARTITION BY w, k) AS s FROM ${windowed("l")}",
      "e"),
    ClosedQuery(
      "a left join",
      s"SELECT l.ts, l.k, l.v, r.v AS rv FROM l LEFT JOIN r ON $Within",
      after("ts")),
    ClosedQuery(
      "a right join",
      s"SELECT r.ts, r.k, r.v, l.v AS lv FROM l RIGHT JOIN r ON $Within",
      "ts + INTERVAL '0.001' SECOND"),
    ClosedQuery(
      "a full join",
      s"SELECT l.ts AS lt, r.ts AS rt, l.v AS lv, r.v AS rv FROM l FULL JOIN r ON $Within",
      s"greatest(${after("lt")}, rt + INTERVAL '0.001' SECOND)",
      everyProvider = true),
    ClosedQuery(
      "a semi join",
      s"SELECT ts, k, v FROM l WHERE EXISTS (SELECT 1 FROM r WHERE $Within)",
      after("ts"),
      onlyComes = true),
    ClosedQuery(
      "an anti join",
      s"SELECT ts, k, v FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE $Within)",
      after("ts")),
    ClosedQuery(
      "an existence join",
      s"SELECT ts, k, v, v > 15 OR EXISTS (SELECT 1 FROM r WHERE $Within) AS e FROM l",
      after("ts")),
    ClosedQuery(
      "an inner join",
      s"SELECT l.ts, r.ts AS rt, l.v, r.v AS rv FROM l JOIN r ON $Within",
      "rt + INTERVAL '0.001' SECOND",
      onlyComes = true),
    ClosedQuery(
      "a union",
      s"SELECT w.end AS e, k, v FROM ${top(1)} UNION ALL SELECT ts, k, v FROM r",
      "e"),
    ClosedQuery(
      "rows with the best of their window",
      s"""SELECT x.w.end AS e, y.v, x.v AS best FROM ${windowed("r")} y
         |JOIN ${top(1)} x ON y.w = x.w""".stripMargin,
      "e"),
    ClosedQuery(
      "counts of both sides",
      s"""SELECT w.end AS e, k, a.c, b.c AS d
         |FROM ${counts("l")} a FULL JOIN ${counts("r")} b USING (w, k)""".stripMargin,
      "e"),
    ClosedQuery(
      "the best counts of each window",
      s"""SELECT w.end AS e, k, c FROM (
         |  SELECT *, rank() OVER (PARTITION BY w ORDER BY c DESC) AS rn FROM ${counts("l")})
         |WHERE rn = 1""".stripMargin,
      "e"),
    ClosedQuery(
      "a sum of the best",
      s"SELECT w.end AS e, sum(v) AS s FROM ${top(2)} GROUP BY w",
      "e",
      closesItself = true),
    ClosedQuery(
      "a difference",
      "SELECT ts, k FROM l EXCEPT SELECT ts, k FROM r",
      "ts",
      closesItself = true),
    ClosedQuery(
      "an intersection",
      s"SELECT w, k FROM ${windowed("l")} INTERSECT SELECT w, k FROM ${windowed("r")}",
      "w.end",
      closesItself = true),
    ClosedQuery(
      "a difference of copies",
      "SELECT ts, k FROM l EXCEPT ALL SELECT ts, k FROM r",
      "ts",
      closesItself = true))
}
