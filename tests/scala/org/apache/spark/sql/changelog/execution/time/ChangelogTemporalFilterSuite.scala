// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import java.time.Instant

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

class ChangelogTemporalFilterSuite extends AnyFunSuite with ChangelogSession {
  private val Minute = 60000L
  private val Hour = 60 * Minute
  private val Day = 24 * Hour
  private val start = Instant.parse("2027-01-10T12:00:00Z").toEpochMilli

  private val events = Feed("events", "id INT, at TIMESTAMP")
  private val news = Feed("events", "id INT, at TIMESTAMP", insertOnly = true)
  private val offers = Feed("offers", "id INT, since TIMESTAMP, until TIMESTAMP", key = Seq("id"))
  private val days = Feed("days", "d DATE, v INT")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    val quick = ChangelogSession.Quick - "spark.sql.shuffle.partitions"
    quick.foreach { case (key, value) => spark.conf.set(key, value) }
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
  }

  /** Runs steps with each state store. */
  private def everyWay(feeds: Seq[Feed], sql: String, modes: Seq[Variant] = Seq(Variant()))(
      steps: TimedRun => Unit): Unit =
    for (variant <- modes) onProviders {
      val run = new TimedRun(spark, feeds, sql, start, variant)
      try withClue(s"$variant ")(steps(run))
      finally run.close()
    }

  test("a row leaves when its time has passed, also when nothing arrives") {
    everyWay(Seq(news), "SELECT id, at FROM events WHERE at > now() - INTERVAL 1 HOUR") { run =>
      assert(
        run.step(0, news -> Seq("+I 1 2027-01-10T11:30:00", "+I 2 2027-01-10T11:00:00")) ==
          Seq("+I 1 2027-01-10T11:30"))
      assert(run.step(15 * Minute, news -> Seq("+I 3 2027-01-10T11:40:00")).size == 1)
      assert(run.step(15 * Minute - 1).isEmpty)
      assert(run.step(1) == Seq("-D 1 2027-01-10T11:30"))
      assert(run.step(9 * Minute).isEmpty)
      assert(run.step(Hour) == Seq("-D 3 2027-01-10T11:40"))
      assert(run.step(Day, news -> Seq("+I 4 NULL", "+I 5 2027-01-10T00:00:00")).isEmpty)
    }
  }

  test("a batch that is run again, and a restart, are at the time of the batch") {
    everyWay(Seq(events), "SELECT id, at FROM events WHERE at > now() - INTERVAL 1 HOUR") { run =>
      run.step(0, events -> Seq("+I 1 2027-01-10T11:30:00", "+I 2 2027-01-10T11:50:00"))
      run.step(30 * Minute)
      run.restart(repeats = true)
      assert(run.settle().isEmpty)
      run.restart()
      // nothing has arrived since: no batch is run yet
      assert(run.step(Hour).isEmpty)
      assert(
        run.step(0, events -> Seq("+I 3 2027-01-10T13:30:00")) ==
          Seq("+I 3 2027-01-10T13:30", "-D 2 2027-01-10T11:50"))
      run.restart(repeats = true)
      assert(run.step(2 * Hour, events -> Seq("+I 3 2027-01-10T13:30:00")).size == 1)
    }
  }

  test("rows that are in, still to come, and gone are taken back") {
    val modes = Seq(Variant(), Variant(mode = "upsert", key = Seq("id")))
    val sql = "SELECT id, since, until FROM offers WHERE now() BETWEEN since AND until"
    everyWay(Seq(offers), sql, modes) { run =>
      run.step(
        0,
        offers -> Seq(
          "+I 1 2027-01-10T11:00:00 2027-01-10T13:00:00",
          "+I 2 2027-01-10T12:30:00 2027-01-10T13:30:00",
          "+I 3 2027-01-10T12:30:00 2027-01-10T12:10:00",
          "+I 4 2027-01-09T12:30:00 2027-01-10T11:10:00",
          "+I 5 2027-01-10T12:40:00 2027-01-10T14:00:00",
          "+I 6 2027-01-10T12:40:00 NULL",
          "+I 7 2027-01-10T11:40:00 2027-01-10T12:20:00"))
      run.step(
        10 * Minute,
        offers -> Seq(
          // in, and stays in; in, and waits; waits, and comes
          "-U 1 2027-01-10T11:00:00 2027-01-10T13:00:00",
          "+U 1 2027-01-10T11:00:00 2027-01-10T13:10:00",
          "-U 7 2027-01-10T11:40:00 2027-01-10T12:20:00",
          "+U 7 2027-01-10T12:40:00 2027-01-10T13:20:00",
          "-U 2 2027-01-10T12:30:00 2027-01-10T13:30:00",
          "+U 2 2027-01-10T12:10:00 2027-01-10T13:30:00"))
      assert(run.step(30 * Minute).size == 2)
      // due in the batch that takes it back; gone; in
      run.step(
        30 * Minute,
        offers -> Seq(
          "-D 1 2027-01-10T11:00:00 2027-01-10T13:10:00",
          "-D 4 2027-01-09T12:30:00 2027-01-10T11:10:00",
          "-D 2 2027-01-10T12:10:00 2027-01-10T13:30:00"))
      assert(run.step(10 * Minute).isEmpty)
      assert(run.step(1).size == 1)
      assert(run.step(Day).size == 1)
      assert(run.step(Day).isEmpty)
    }
  }

  test("a row that is taken back before it comes never comes") {
    everyWay(Seq(events), "SELECT id, at FROM events WHERE at > now() - INTERVAL 1 HOUR") { run =>
      val (first, second) = ("1 2027-01-10T11:30:00", "2 2027-01-10T11:40:00")
      assert(run.step(0, events -> Seq(s"-D $first", s"-D $second", s"-D $second")).isEmpty)
      run.restart()
      assert(run.step(Minute, events -> Seq(s"+I $first", s"+I $second")).isEmpty)
      assert(
        run.step(Minute, events -> Seq(s"+I $first", s"+I $second", s"+I $second")).size == 2)
      // the insert comes when its time has passed
      assert(run.step(Minute, events -> Seq("-D 3 2027-01-10T11:10:00")).isEmpty)
      assert(run.step(10 * Minute, events -> Seq("+I 3 2027-01-10T11:10:00")).isEmpty)
      assert(run.step(Hour).size == 2)
    }
    val sql = "SELECT id, at FROM events WHERE at BETWEEN now() AND now() + INTERVAL 1 HOUR"
    everyWay(Seq(events), sql) { run =>
      // it would come later, and leave
      assert(run.step(0, events -> Seq("-D 1 2027-01-10T13:30:00")).isEmpty)
      assert(run.step(Hour).isEmpty)
      assert(run.step(0, events -> Seq("+I 1 2027-01-10T13:30:00")).isEmpty)
      assert(run.step(Hour).isEmpty)
    }
  }

  test("a row that stays for ever is taken back as soon as below a plain filter") {
    everyWay(Seq(events), "SELECT id, count(*) AS c FROM events WHERE at < now() GROUP BY id") {
      run =>
        run.step(0, events -> Seq("-D 1 2027-01-10T12:30:00", "+I 2 2027-01-10T12:30:00"))
        assert(run.step(Hour) == Seq("+I 2 1"))
        assert(run.step(0, events -> Seq("+I 1 2027-01-10T12:30:00")).isEmpty)
        assert(run.step(0, events -> Seq("+I 1 2027-01-10T12:30:00")) == Seq("+I 1 1"))
    }
  }

  test("rows leave at midnight, and equal rows count") {
    everyWay(Seq(days), "SELECT d, v FROM days WHERE d >= current_date() - 2") { run =>
      run.step(
        0,
        days -> Seq("+I 2027-01-08 1", "+I 2027-01-08 1", "+I 2027-01-07 1", "+I 2027-01-30 2"))
      assert(run.step(12 * Hour - 1).isEmpty)
      assert(run.step(1) == Seq.fill(2)("-D 2027-01-08 1"))
      run.step(0, days -> Seq("+I 2027-01-09 3", "+I 2027-01-09 3", "-D 2027-01-08 1"))
      run.step(Hour, days -> Seq("-D 2027-01-09 3"))
      assert(run.step(Day) == Seq("-D 2027-01-09 3"))
      assert(run.step(60 * Day) == Seq("-D 2027-01-30 2"))
    }
  }

  test("words for times move on, though Spark's parser makes constants of them") {
    val local = Feed("locals", "id INT, at TIMESTAMP_NTZ")
    val sql =
      "SELECT d, v, 'DATE' AS at FROM days WHERE d > DATE 'yesterday' AND d >= CAST('yesterday' AS DATE) " +
        "UNION ALL SELECT DATE '2027-01-01', id, 'now' FROM events WHERE at > TIMESTAMP 'now' " +
        "UNION ALL SELECT DATE '2027-01-01', id, 'today' FROM events WHERE at >= TIMESTAMP 'today' " +
        "UNION ALL SELECT DATE '2027-01-01', id, 'local' FROM locals WHERE at < TIMESTAMP_NTZ 'tomorrow' " +
        "AND at > TIMESTAMP_NTZ 'now' " +
        "UNION ALL SELECT DATE '2027-01-01', v, 'in' FROM days WHERE d IN (DATE 'today')"
    val run = new TimedRun(spark, Seq(days, events, local), sql, start)
    try {
      run.step(
        0,
        days -> Seq("+I 2027-01-09 1", "+I 2027-01-10 2", "+I 2027-01-11 3"),
        events -> Seq("+I 4 2027-01-10T13:00:00", "+I 5 2027-01-12T00:00:00"),
        local -> Seq("+I 6 2027-01-10T14:00:00", "+I 7 2027-01-11T20:00:00"))
      assert(run.step(Hour) == Seq("-D 2027-01-01 4 now"))
      run.step(Hour, days -> Seq("-D 2027-01-10 2"))
      run.restart()
      run.step(10 * Hour)
      run.step(Day, days -> Seq("+I 2027-01-11 8"))
      assert(run.step(10 * Day).nonEmpty)
    } finally run.close()
  }

  test("rows that come leave an aggregate above right, in every mode") {
    val sql =
      "SELECT d, count(*) AS n, sum(v) AS s FROM days WHERE d <= current_date() GROUP BY d"
    everyWay(Seq(days), sql, Seq(Variant(), Variant(mode = "upsert", key = Seq("d")))) { run =>
      run.step(0, days -> Seq("+I 2027-01-10 1", "+I 2027-01-11 2", "+I 2027-01-11 3"))
      assert(run.step(Day).size == 1)
      run.step(0, days -> Seq("-D 2027-01-11 3", "+I 2027-01-12 3", "+I 2027-01-12 4"))
      run.step(Day, days -> Seq("-D 2027-01-12 4"))
    }
  }

  test("rows that only come are new rows, also for a reader that takes no others") {
    val sql = "SELECT id FROM events WHERE at <= now()"
    everyWay(Seq(news), sql, Seq(Variant(mode = "append"))) { run =>
      run.step(0, news -> Seq("+I 1 2027-01-10T11:30:00", "+I 2 2027-01-10T12:30:00"))
      run.step(Minute, news -> Seq("+I 3 2027-01-10T12:30:00", "+I 4 NULL"))
      assert(run.step(Hour) == Seq("+I 2", "+I 3"))
    }
  }

  test("a row that meets one of several conditions comes and goes as often as they say") {
    val flags = Feed("flags", "id INT, since TIMESTAMP, until TIMESTAMP, pinned BOOLEAN")
    val rows = Seq(
      "1 2027-01-10T11:00:00 2027-01-10T13:00:00",
      "2 2027-01-10T12:20:00 2027-01-10T12:40:00",
      "3 NULL 2027-01-10T12:40:00",
      "4 2027-01-10T12:20:00 NULL",
      "5 2027-01-10T13:20:00 2027-01-10T12:10:00",
      "6 NULL NULL")
    val all = rows.flatMap(row => Seq("true", "false", "NULL").map(pin => s"$row $pin"))
    Seq(
      "until > now() - INTERVAL 10 MINUTES OR pinned",
      "NOT (now() BETWEEN since AND until)",
      "NOT (now() BETWEEN since AND until AND pinned) AND id < 6",
      "since > now() OR until < now()",
      "(since <= now() AND pinned) OR (until <= now() AND NOT pinned)",
      "now() NOT IN (since, until) AND NOT (until > now() OR pinned)",
      "CAST(until AS DATE) <> current_date() OR since > now()",
      "current_date() IN (CAST(since AS DATE), DATE '2027-01-11') OR pinned IS NULL",
      "NOT (since > now() AND NOT (until > now() - INTERVAL 1 MONTH))",
      "(since > now() OR pinned) AND (until > now() OR NOT pinned) AND since <= now() + INTERVAL 1 HOUR",
      "since <= now() OR (pinned AND id IN (SELECT id FROM days JOIN flags ON v = id))",
      "NOT (until <=> now()) AND NOT (CAST(since AS DATE) <=> current_date())",
      "CASE WHEN since > now() THEN pinned WHEN pinned THEN until > now() ELSE until <= now() END",
      "NOT CASE WHEN pinned THEN until > now() WHEN since < now() THEN id > 2 END",
      "since < now() OR until < now() OR pinned").foreach { condition =>
      val sql = s"SELECT id, since, until, pinned FROM flags WHERE $condition"
      val run = new TimedRun(spark, Seq(flags, days), sql, start)
      try
        withClue(s"$condition ") {
          run.step(0, flags -> all.map("+I " + _), days -> Seq("+I 2027-01-10 2"))
          run.step(10 * Minute)
          run.step(10 * Minute, flags -> all.filter(_.endsWith("e")).map("-D " + _))
          run.step(0, flags -> all.filter(_.endsWith("true")).map("+I " + _))
          run.restart()
          run.step(20 * Minute, days -> Seq("+I 2027-01-10 4"))
          run.step(1)
          run.step(20 * Minute, flags -> all.filter(_.endsWith("L")).map("-D " + _))
          run.step(20 * Minute, flags -> all.filter(_.endsWith("L")).map("+I " + _))
          run.step(12 * Hour)
          run.step(50 * Day)
        }
      finally run.close()
    }
  }

  test("rows that come by one of several conditions and never go are new rows") {
    val sql =
      "SELECT id FROM events WHERE at <= now() OR id < 2 AND NOT (at > now() + INTERVAL 1 HOUR)"
    everyWay(Seq(news), sql, Seq(Variant(mode = "append"))) { run =>
      run.step(0, news -> Seq("+I 1 2027-01-10T12:30:00", "+I 2 2027-01-10T12:30:00"))
      assert(run.step(Hour) == Seq("+I 2"))
    }
  }

  test("state is what is due only, by the time it is due") {
    val sql = "SELECT id, since, until FROM offers WHERE now() BETWEEN since AND until"
    val run = new TimedRun(spark, Seq(offers), sql, start)
    try {
      run.step(
        0,
        offers -> Seq(
          "+I 1 2027-01-10T11:00:00 2027-01-10T13:00:00",
          "+I 2 2027-01-10T14:00:00 2027-01-10T15:00:00",
          "+I 3 2027-01-10T11:00:00 2027-01-10T11:30:00"))
      def rows = {
        val state = spark.read.format("statestore").load(run.checkpointLocation)
        val kept = state
          .where("key.level = 0")
          .selectExpr(
            "key.id",
            "timestamp_millis(key.time) AS time",
            "value.count",
            "value.shown")
        kept.collect().map(TextChangelog.format).toSeq.sorted
      }
      assert(rows == Seq("1 2027-01-10T13:00:00.001 1 true", "2 2027-01-10T14:00 1 false"))
      run.step(2 * Hour)
      assert(rows == Seq("2 2027-01-10T15:00:00.001 1 true"))
      run.step(2 * Hour)
      assert(rows.isEmpty)
      val operators = run.query.recentProgress.flatMap(_.stateOperators)
      assert(operators.exists(_.customMetrics.get("numRowsExpired") == 1))
      assert(operators.exists(_.customMetrics.get("numRowsAppeared") == 1))
    } finally run.close()
  }

  test("conditions of joins, above aggregates and in subqueries are kept up with") {
    Seq(
      "SELECT e.id, o.until FROM events e JOIN offers o ON e.id = o.id AND o.until > now()",
      "SELECT e.id, o.until FROM events e LEFT JOIN offers o ON e.id = o.id AND o.until > now()",
      "SELECT e.id, o.until FROM events e JOIN offers o ON e.id = o.id " +
        "AND e.at + (o.until - o.since) > now()",
      "SELECT id FROM events WHERE id IN (SELECT id FROM offers WHERE since <= now())",
      "SELECT id FROM events WHERE NOT EXISTS " +
        "(SELECT 1 FROM offers o WHERE o.id = events.id AND o.until < localtimestamp())",
      "SELECT id, at FROM events WHERE EXISTS " +
        "(SELECT 1 FROM offers o WHERE o.id = events.id AND events.at > now() - INTERVAL 1 HOUR)",
      "SELECT id, at FROM events WHERE NOT EXISTS " +
        "(SELECT 1 FROM offers o WHERE o.id = events.id AND events.at > now() - INTERVAL 1 HOUR)",
      "SELECT e.id FROM events e LEFT ANTI JOIN offers o ON e.id = o.id AND o.until > now() " +
        "AND (e.at < now() - INTERVAL 45 MINUTES OR e.id = 2)",
      "SELECT id, max(at) AS m FROM events GROUP BY id HAVING max(at) > now() - INTERVAL 1 HOUR",
      "SELECT id FROM events WHERE at > now() - INTERVAL 30 MINUTES UNION ALL " +
        "SELECT id FROM offers WHERE datediff(current_date(), since) < 1",
      "SELECT count(*) AS n FROM events WHERE now() > TIMESTAMP '2027-01-10T12:20:00Z'",
      "SELECT id, rank() OVER (PARTITION BY id ORDER BY at DESC) AS r FROM events " +
        "WHERE at > now() - INTERVAL 1 HOUR",
      "SELECT e.id, s.x FROM events e JOIN VALUES (1, TIMESTAMP '2027-01-10T12:20:00Z'), " +
        "(2, TIMESTAMP '2027-01-10T14:00:00Z') AS s(id, x) ON e.id = s.id AND s.x > now()")
      .foreach { sql =>
        withClue(sql) {
          val run = new TimedRun(spark, Seq(events, offers), sql, start)
          try {
            run.step(
              0,
              events -> Seq("+I 1 2027-01-10T11:30:00", "+I 2 2027-01-10T11:50:00", "+I 2 NULL"),
              offers -> Seq(
                "+I 1 2027-01-10T11:00:00 2027-01-10T12:15:00",
                "+I 2 2027-01-10T12:10:00 2027-01-10T13:00:00"))
            run.step(20 * Minute, events -> Seq("+I 1 2027-01-10T12:19:00"))
            run.step(20 * Minute, offers -> Seq("-D 1 2027-01-10T11:00:00 2027-01-10T12:15:00"))
            run.restart()
            run.step(Hour, events -> Seq("-D 1 2027-01-10T12:19:00"))
            run.step(12 * Hour)
          } finally run.close()
        }
      }
  }

  test("rows that are too old are taken back by when they came") {
    val feed = Feed(
      "feed",
      "id INT, v INT",
      key = Seq("id"),
      upsert = true,
      below = Some("SELECT *, current_timestamp() AS came FROM arrived"))
    val sql = "SELECT id, v FROM feed WHERE came > current_timestamp() - INTERVAL 3 DAYS"
    val run = new TimedRun(spark, Seq(feed), sql, start, compares = false)
    try {
      assert(run.step(0, feed -> Seq("+I 1 1", "+I 2 2")) == Seq("+I 1 1", "+I 2 2"))
      assert(run.step(Day, feed -> Seq("+U 2 3")) == Seq("+U 2 3", "-U 2 2"))
      run.restart(repeats = true)
      assert(run.step(2 * Day) == Seq("-D 1 1"))
      assert(run.step(0, feed -> Seq("+U 1 4")) == Seq("+I 1 4"))
      assert(run.step(Day) == Seq("-D 2 3"))
    } finally run.close()
  }

  test("a clock that is set back stands still") {
    everyWay(Seq(events), "SELECT id, at FROM events WHERE at > now() - INTERVAL 1 HOUR") { run =>
      run.step(0, events -> Seq("+I 1 2027-01-10T11:10:00", "+I 2 2027-01-10T11:50:00"))
      assert(run.step(20 * Minute) == Seq("-D 1 2027-01-10T11:10"))
      run.setTime(start)
      assert(
        run
          .step(0, events -> Seq("+I 3 2027-01-10T11:10:00", "-D 2 2027-01-10T11:50:00"))
          .size == 1)
      run.restart()
      run.step(5 * Minute, events -> Seq("+I 4 2027-01-10T11:18:00", "+I 5 2027-01-10T11:21:00"))
    }
  }

  test("at the end of a month rows go to and fro as they do in batch Spark") {
    val monthAgo = Feed("events", "id INT, at TIMESTAMP")
    val sql = "SELECT id, at FROM events WHERE at > now() - INTERVAL 1 MONTH"
    val run =
      new TimedRun(spark, Seq(monthAgo), sql, Instant.parse("2027-03-27T12:00:00Z").toEpochMilli)
    try {
      run.step(0, monthAgo -> Seq("+I 1 2027-02-28T12:00:00", "+I 2 2027-02-27T18:00:00"))
      assert((1 to 20).flatMap(_ => run.step(6 * Hour)).count(_.startsWith("+I")) > 1)
      run.step(0, monthAgo -> Seq("-D 1 2027-02-28T12:00:00", "+I 3 2027-03-01T00:00:00"))
      run.step(Day)
    } finally run.close()
  }

  test("random rows come, go and are taken back while time passes") {
    val random = new scala.util.Random(4711)
    everyWay(
      Seq(offers.copy(key = Nil)),
      "SELECT id, since, until FROM offers " +
        "WHERE since <= now() AND until > now() AND now() - INTERVAL 2 HOURS < since") { run =>
      val feed = offers.copy(key = Nil)
      var there = Vector.empty[String]
      def time(around: Long) =
        Instant
          .ofEpochMilli(around + random.nextInt(3 * Hour.toInt) - Hour)
          .toString
          .stripSuffix("Z")
      var now = start
      run.step(0, feed -> Nil)
      for (_ <- 1 to 12) {
        val passes = random.nextInt(40 * Minute.toInt).toLong
        now += passes
        val come =
          Seq.fill(random.nextInt(6))(s"${random.nextInt(3)} ${time(now)} ${time(now + Hour)}")
        val twice = come.filter(_ => random.nextInt(4) == 0)
        val goes = there.filter(_ => random.nextInt(4) == 0)
        there = there.diff(goes) ++ come ++ twice
        val changes = (come ++ twice).map("+I " + _) ++ goes.map("-D " + _)
        random.nextInt(4) match {
          case 0 => run.step(passes)
          case 1 => run.restart(repeats = random.nextBoolean())
          case _ =>
        }
        run.step(passes, feed -> changes)
      }
    }
  }
}
