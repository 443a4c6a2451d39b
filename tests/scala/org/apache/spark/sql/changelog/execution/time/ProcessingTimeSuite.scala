// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.time

import java.time.Instant

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/**
 * Queries by the time of arrival, which a source records as a column `current_timestamp()`. Batch
 * Spark is given the times that the clock showed.
 */
class ProcessingTimeSuite extends AnyFunSuite with ChangelogSession {
  private val start = Instant.parse("2027-01-10T12:00:00Z").toEpochMilli
  // lines give the expected time, which the clock replaces
  private val byClock = Some("SELECT * EXCEPT (at), current_timestamp() AS at FROM arrived")
  private val bids =
    Feed("bid", "auction INT, bidder INT, at TIMESTAMP", insertOnly = true, below = byClock)
  private val riders = Feed(
    "rider",
    "id INT, city STRING, at TIMESTAMP",
    key = Seq("id"),
    upsert = true,
    below = byClock)

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    (ChangelogSession.Quick - "spark.sql.shuffle.partitions").foreach { case (key, value) =>
      spark.conf.set(key, value)
    }
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
  }

  private def timed(feed: Feed, sql: String)(steps: TimedRun => Unit): Unit = onProviders {
    val run = new TimedRun(spark, Seq(feed), sql, start)
    try steps(run)
    finally run.close()
  }

  test(
    "query 12 of Nexmark: windows of ten seconds close by the clock, also when nothing arrives") {
    val sql = "SELECT * FROM (SELECT bidder, count(*) AS bids, window.end AS closed " +
      "FROM bid GROUP BY bidder, window(at, '10 seconds')) WHERE closed <= now()"
    timed(bids, sql) { run =>
      assert(
        run
          .step(0, bids -> Seq("+I 1 7 2027-01-10T12:00:00", "+I 2 7 2027-01-10T12:00:00"))
          .isEmpty)
      assert(run.step(9000, bids -> Seq("+I 1 8 2027-01-10T12:00:09")).isEmpty)
      assert(
        run.step(1000) ==
          Seq("+I 7 2 2027-01-10T12:00:10", "+I 8 1 2027-01-10T12:00:10"))
      run.step(1500, bids -> Seq("+I 3 7 2027-01-10T12:00:11.5"))
      run.restart(repeats = true)
      assert(run.settle().isEmpty)
      assert(run.step(20000, bids -> Seq("+I 3 9 2027-01-10T12:00:31.5")).size == 1)
      assert(run.step(10000) == Seq("+I 9 1 2027-01-10T12:00:40"))
    }
  }

  test("the first row of a key by the time of arrival stays") {
    val sql = "SELECT auction, bidder, at FROM (SELECT *, row_number() OVER (" +
      "PARTITION BY auction ORDER BY at, bidder) AS place FROM bid) WHERE place = 1"
    timed(bids, sql) { run =>
      assert(run.step(0, bids -> Seq("+I 1 7 2027-01-10T12:00:00")).size == 1)
      assert(
        run.step(1000, bids -> Seq("+I 1 3 2027-01-10T12:00:01", "+I 2 5 2027-01-10T12:00:01")) ==
          Seq("+I 2 5 2027-01-10T12:00:01"))
    }
  }

  test("a keyed row belongs to the window of its newest change") {
    val sql = "SELECT window.end AS closed, count(*) AS n FROM rider " +
      "GROUP BY window(at, '1 minute')"
    timed(riders, sql) { run =>
      run.step(0, riders -> Seq("+I 1 Oslo 2027-01-10T12:00:00", "+I 2 Bern 2027-01-10T12:00:00"))
      assert(
        run.step(
          60000,
          riders -> Seq("-U 1 Oslo 2027-01-10T12:00:00", "+U 1 Rome 2027-01-10T12:01:00")) ==
          Seq("+I 2027-01-10T12:01 1", "+I 2027-01-10T12:02 1", "-D 2027-01-10T12:01 2"))
    }
  }
}
