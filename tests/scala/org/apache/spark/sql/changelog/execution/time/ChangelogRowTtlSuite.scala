// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import java.time.Instant

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** What a hint `ROW_TTL` makes of a query is held against batch Spark over the rows remembered. */
class ChangelogRowTtlSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val Minute = 60000L
  private val Hour = 60 * Minute
  private val start = Instant.parse("2027-01-10T12:00:00Z").toEpochMilli

  private val orders = Feed("orders", "id INT, v INT", key = Seq("id"))
  private val bag = Feed("bag", "g STRING, v INT")
  private val news = Feed("news", "g STRING, v INT", insertOnly = true)
  private val upserts = Feed("upserts", "id INT, v INT", key = Seq("id"), upsert = true)

  private val byId = Seq(Variant(), Variant(mode = "upsert", key = Seq("id")))

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    val quick = ChangelogSession.Quick - "spark.sql.shuffle.partitions"
    quick.foreach { case (key, value) => spark.conf.set(key, value) }
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
  }

  private def run(
      feeds: Seq[Feed],
      sql: String,
      ttls: Map[String, Long],
      variant: Variant = Variant())(steps: TimedRun => Unit): Unit = {
    val run =
      new TimedRun(spark, feeds, sql, start, variant, compares = ttls.nonEmpty, ttls = ttls)
    try withClue(s"$sql $variant ")(steps(run))
    finally run.close()
  }

  test("a row leaves when nothing has changed it for so long, also when nothing arrives") {
    onProviders {
      val sql = "SELECT /*+ ROW_TTL(news, '1 hour') */ g, v FROM news"
      run(Seq(news), sql, Map("news" -> Hour)) { run =>
        assert(run.step(0, news -> Seq("+I a 1", "+I b 2")).size == 2)
        assert(run.step(30 * Minute, news -> Seq("+I a 1", "+I c 3")).size == 2)
        assert(run.step(30 * Minute - 1).isEmpty)
        assert(run.step(1) == Seq("-D a 1", "-D b 2"))
        // one leaves as another comes, and both come in one batch
        run.stop()
        assert(run.step(30 * Minute, news -> Seq("+I a 1")) == Seq("-D c 3"))
        assert(run.step(Hour) == Seq("-D a 1"))
        assert(run.step(30 * Hour, news -> Seq("+I d 4")) == Seq("+I d 4"))
      }
    }
  }

  test("a change renews a row, and one of a row that is gone brings it back") {
    val sql = "SELECT /*+ ROW_TTL(orders, '1 hour') */ id, v FROM orders"
    for (variant <- byId) onProviders {
      run(Seq(orders), sql, Map("orders" -> Hour), variant) { run =>
        run.step(0, orders -> Seq("+I 1 10", "+I 2 20", "+I 3 30", "+I 4 40"))
        run.step(30 * Minute, orders -> Seq("-U 2 20", "+U 2 21", "-D 4 40"))
        assert(run.step(30 * Minute) == Seq("-D 1 10", "-D 3 30"))
        // of rows that are gone: an update, and a deletion
        assert(
          run.step(0, orders -> Seq("-U 1 10", "+U 1 11", "-D 3 30")) == Seq("+I 1 11") ||
            variant.mode == "upsert")
        assert(
          run.query.recentProgress.exists(_.stateOperators.exists(
            _.customMetrics.getOrDefault("numRetractionsOfExpiredRows", 0L) == 2)))
        // due in the batch that changes it
        assert(run.step(30 * Minute, orders -> Seq("-U 2 21", "+U 2 22")).nonEmpty)
        assert(run.step(30 * Minute) == Seq("-D 1 11"))
        assert(run.step(30 * Minute) == Seq("-D 2 22"))
      }
    }
  }

  test("a row that is given anew as it is has not changed") {
    val sql = "SELECT /*+ ROW_TTL(o, '1 hour') */ id, v FROM upserts AS o"
    run(Seq(upserts), sql, Map.empty) { run =>
      assert(run.step(0, upserts -> Seq("+I 1 10", "+I 2 20")).size == 2)
      assert(run.step(30 * Minute, upserts -> Seq("+U 1 10", "+U 2 21")).size == 2)
      assert(run.step(30 * Minute) == Seq("-D 1 10"))
      // the source still has it
      assert(run.step(0, upserts -> Seq("+U 1 10")).isEmpty)
      assert(run.step(0, upserts -> Seq("+U 1 12")) == Seq("+I 1 12"))
      assert(run.step(30 * Minute) == Seq("-D 2 21"))
    }
  }

  test("of equal rows the one that came first leaves first, and is taken back first") {
    onProviders {
      val sql = "SELECT /*+ ROW_TTL(bag, '1 hour') */ g, v FROM bag"
      run(Seq(bag), sql, Map("bag" -> Hour)) { run =>
        run.step(0, bag -> Seq("+I a 1", "+I a 1", "+I b 1"))
        run.step(20 * Minute, bag -> Seq("+I a 1", "+I b 1"))
        run.step(20 * Minute, bag -> Seq("-D a 1"))
        assert(run.step(20 * Minute) == Seq("-D a 1", "-D b 1"))
        assert(run.step(10 * Minute, bag -> Seq("-D a 1", "-D a 1", "-D b 1")).size == 2)
        assert(run.step(Hour).isEmpty)
        // it is the older one that is due, whether or not a batch was run for that alone
        run.step(0, bag -> Seq("+I c 1"))
        run.step(10 * Minute, bag -> Seq("+I c 1"))
        run.stop()
        assert(run.step(55 * Minute, bag -> Seq("-D c 1")) == Seq("-D c 1", "-D c 1"))
      }
    }
  }

  test("a batch that is run again, and a restart, are at the time of the batch") {
    onProviders {
      val sql = "SELECT /*+ ROW_TTL(orders, '1 hour') */ id, v FROM orders"
      run(Seq(orders), sql, Map("orders" -> Hour)) { run =>
        run.step(0, orders -> Seq("+I 1 1", "+I 2 2"))
        run.step(30 * Minute, orders -> Seq("-U 2 2", "+U 2 3"))
        run.step(30 * Minute)
        run.restart(repeats = true)
        assert(run.settle().isEmpty)
        run.restart()
        // nothing has arrived since: no batch is run yet
        assert(run.step(Hour).isEmpty)
        assert(run.step(0, orders -> Seq("+I 3 3")) == Seq("+I 3 3", "-D 2 3"))
        run.restart(repeats = true)
        run.setTime(start)
        run.step(Minute, orders -> Seq("+I 4 4"))
      }
    }
  }

  test("what is computed of rows that leave is taken back, wherever the hint stands") {
    val hint = "/*+ ROW_TTL(orders, '1 hour') */"
    Seq(
      s"SELECT $hint v % 2 AS m, count(*) AS n, sum(id) AS s, max(id) AS x FROM orders GROUP BY v % 2",
      s"SELECT $hint orders.id, b.g FROM bag b FULL JOIN orders ON orders.v = b.v",
      s"SELECT g FROM bag WHERE v IN (SELECT $hint v FROM orders)",
      s"SELECT g FROM bag WHERE NOT EXISTS (SELECT $hint 1 FROM orders WHERE orders.v = bag.v)",
      s"SELECT g, (SELECT $hint max(id) FROM orders WHERE orders.v = bag.v) AS a FROM bag",
      s"SELECT b.g, l.id FROM bag b, LATERAL (SELECT $hint id FROM orders WHERE orders.v = b.v) l",
      s"SELECT $hint id, rank() OVER (PARTITION BY v % 2 ORDER BY v, id) AS r FROM orders",
      s"SELECT $hint id FROM orders ORDER BY v DESC, id LIMIT 2",
      s"SELECT id FROM (SELECT $hint * FROM orders) WHERE v > 1 UNION ALL SELECT v FROM bag",
      s"WITH c AS (SELECT $hint v, count(*) AS n FROM orders GROUP BY v) " +
        "SELECT a.v, b.n FROM c a JOIN c b ON a.n = b.v")
      .foreach { sql =>
        run(Seq(orders, bag), sql, Map("orders" -> Hour)) { run =>
          run.step(0, orders -> Seq("+I 1 1", "+I 2 2", "+I 3 1"), bag -> Seq("+I a 1", "+I b 3"))
          run.step(20 * Minute, orders -> Seq("-U 2 2", "+U 2 3"), bag -> Seq("+I c 2"))
          run.step(40 * Minute)
          run.restart()
          run.step(0, orders -> Seq("-U 1 1", "+U 1 3"), bag -> Seq("-D b 3"))
          run.step(3 * Hour)
        }
      }
  }

  test("conditions on the time and several hints stand beside each other") {
    val sql =
      "SELECT /*+ ROW_TTL(o, '1 hour', b, '30 minutes') */ " +
        "o.id, b.g FROM orders o JOIN bag b ON o.v = b.v " +
        "WHERE timestamp_seconds(1799582400 + o.id * 600) <= now()"
    run(Seq(orders, bag), sql, Map("orders" -> Hour, "bag" -> Hour / 2)) { run =>
      run.step(0, orders -> Seq("+I 1 1", "+I 2 2"), bag -> Seq("+I a 1", "+I b 2"))
      run.step(10 * Minute)
      run.step(10 * Minute, bag -> Seq("+I b 1"))
      run.step(Minute, orders -> Seq("-U 2 2", "+U 2 1"))
      run.step(10 * Minute)
      run.step(Hour)
    }
  }

  test("another length holds for what is kept, and the hint can't come or go") {
    val life = new QueryLife(spark, orders)
    def sql(ttl: String) = s"SELECT /*+ ROW_TTL(orders, '$ttl') */ id, v FROM orders"
    life.add(orders, "+I 1 1", "+I 2 2")
    life.run(life.changes(sql("1 day")))
    life.add(orders, "+I 3 3")
    life.run(life.changes(sql("2 days")))
    assert(life.result == life.expected(sql("2 days")))
    life.add(orders, "+I 5 5")
    checkError("CHANGELOG_QUERY_CHANGED")(life.run(life.changes("SELECT id, v FROM orders")))
    Thread.sleep(10)
    life.add(orders, "+I 4 4")
    life.run(life.changes(sql("1ms")))
    assert(life.result.contents.keySet.subsetOf(Set(Seq(4, 4), Seq(5, 5))), life.result)
  }

  test("state is the rows that are there, by when they came") {
    val sql = "SELECT /*+ ROW_TTL(bag, '1 hour') */ g, v FROM bag WHERE v > 0"
    run(Seq(bag), sql, Map("bag" -> Hour)) { run =>
      run.step(0, bag -> Seq("+I a 1", "+I a 1", "+I b 0"))
      run.step(30 * Minute, bag -> Seq("+I a 1", "+I c 3"))
      def rows(level: Int) = spark.read
        .format("statestore")
        .load(run.checkpointLocation)
        .where(s"key.level = $level")
        .selectExpr(
          "key.g",
          "if(key.level = 0, timestamp_millis(key.time), NULL) AS time",
          "value.count")
        .collect()
        .map(TextChangelog.format)
        .toSeq
        .sorted
      // what the query leaves out is not kept
      assert(
        rows(0) == Seq("a 2027-01-10T12:00 2", "a 2027-01-10T12:30 1", "c 2027-01-10T12:30 1"))
      assert(rows(9).size == 3)
      run.step(0, bag -> Seq("-D c 3"))
      run.step(30 * Minute)
      assert(rows(0) == Seq("a 2027-01-10T12:30 1"))
      run.step(30 * Minute)
      assert(Seq(0, 1, 9).flatMap(rows).isEmpty)
    }
  }

  test("random rows come and go while time passes") {
    val random = new scala.util.Random(815)
    val sql = "SELECT /*+ ROW_TTL(bag, '1 hour') */ g, v FROM bag WHERE v > 0"
    onProviders {
      run(Seq(bag), sql, Map("bag" -> Hour)) { run =>
        var there = Vector.empty[String]
        run.step(0, bag -> Nil)
        for (_ <- 1 to 15) {
          val come =
            Seq.fill(random.nextInt(6))(s"${"ab".charAt(random.nextInt(2))} ${random.nextInt(3)}")
          val goes = there.filter(_ => random.nextInt(4) == 0)
          there = there.diff(goes) ++ come
          random.nextInt(4) match {
            case 0 => run.step(random.nextInt(30) * Minute)
            case 1 => run.restart(repeats = random.nextBoolean())
            case _ =>
          }
          run.step(
            random.nextInt(3) * 10 * Minute,
            bag -> (come.map("+I " + _) ++ goes.map("-D " + _)))
        }
      }
    }
  }
}
