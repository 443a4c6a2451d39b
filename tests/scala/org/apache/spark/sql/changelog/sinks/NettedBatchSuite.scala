// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** A sink that knows by what a batch is netted has the same rows as one that groups it. */
class NettedBatchSuite extends AnyFunSuite with ChangelogSession {
  private val rides = Feed("rides", "id INT, city STRING, fare INT", key = Seq("id"))
  private val byCity = "SELECT city, count(*) AS n, sum(fare) AS total FROM rides GROUP BY city"

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.Quick + ("spark.sql.shuffle.partitions" -> "2"))

  /** Whether every batch is taken as it comes. */
  private def isUsed(
      sql: String,
      arguments: String = "",
      key: String = "",
      feed: Feed = rides,
      prepare: DataFrame => DataFrame = identity): Boolean = {
    val query = new KeptQuery(spark, feed, sql, null)
    def run(changes: String*) = {
      query.add(changes: _*)
      query.processAll()
      BothWays.last
    }
    try {
      query.start(BothWays.Format, Map("key" -> key), arguments, prepare)
      val batches = Seq(
        run("+I 1 Oslo 5", "+I 2 Rome 7", "+I 3 NULL 1", "+I 4 Oslo 2", "+I 5 Bern 9"),
        run("-U 1 Oslo 5", "+U 1 Rome 6", "-D 3 NULL 1", "-U 4 Oslo 2", "+U 4 Oslo 3"),
        run("-D 5 Bern 9", "+I 6 NULL 4", "-U 4 Oslo 3", "+U 4 Oslo 1"))
      assert(batches.distinct.size == 1)
      batches.head
    } finally query.stop()
  }

  for (mode <- Share.ofWays(Seq("retract", "upsert"), "NettedBatchSuite")) {
    val arguments = s", mode => '$mode'"

    test(s"rows of an operator's key are taken as they come, mode $mode") {
      assert(isUsed(byCity, arguments))
      assert(isUsed(s"SELECT total, city FROM ($byCity) WHERE n > 1", arguments))
      assert(isUsed("SELECT count(*) AS n, sum(fare) AS total FROM rides", arguments))
    }

    test(s"rows netted for the reader are taken as they come, mode $mode") {
      assert(isUsed("SELECT id, city, fare FROM rides", arguments))
    }

    test(s"rows of a source of new rows are taken as they come, mode $mode") {
      assert(isUsed("SELECT id, fare FROM rides", arguments, feed = rides.copy(upsert = true)))
    }
  }

  test("rows of a larger key are taken as they come") {
    assert(isUsed(byCity, key = "city, n"))
  }

  test(
    "columns that are left out or moved, and rows that are left out, leave rows side by side") {
    assert(isUsed(byCity, prepare = _.select("_change_type", "city", "total")))
    assert(isUsed(byCity, prepare = _.where("total > 5")))
    assert(isUsed(byCity, prepare = _.where("_change_type <> 'update_postimage'")))
  }

  test("rows are grouped by another key than what they are netted by") {
    val ranked = """SELECT id, city, fare, r FROM (
      SELECT *, row_number() OVER (PARTITION BY city ORDER BY fare, id) AS r FROM rides) WHERE r <= 2"""
    assert(!isUsed(ranked, key = "id"))
  }

  test("rows are grouped if anything moves them, or names the key anew") {
    def moved(prepare: DataFrame => DataFrame) = isUsed(byCity, key = "city", prepare = prepare)
    assert(!moved(_.repartition(3)))
    assert(!moved(changes => changes.where("n > 1").union(changes.where("n <= 1"))))
    assert(!moved(_.selectExpr("coalesce(city, '?') AS city", "n", "total", "_change_type")))
  }

  test("rows are grouped by a key whose equal values may have other bytes") {
    val feed = Feed("rides", "id INT, city STRING, fare DOUBLE", key = Seq("id"))
    assert(!isUsed("SELECT fare, count(*) AS n FROM rides GROUP BY fare", feed = feed))
    val folded =
      "SELECT city COLLATE UTF8_LCASE AS city, sum(fare) AS total FROM rides GROUP BY 1"
    assert(!isUsed(folded))
  }
}
