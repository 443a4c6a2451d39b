// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.testing._

/** The risks shown by EXPLAIN and logged at a start, and for each risk a query without it. */
class RisksSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private def views(): Unit = {
    val columns = "id INT, city STRING, fare INT, at TIMESTAMP"
    new RawStream(spark, "raw", s"op STRING, $columns")
    val rides = new RawStream(spark, "rides", columns)
    rides.toDF.withWatermark("at", "1 hour").createOrReplaceTempView("timed")
    spark.sql("SELECT * FROM from_changelog(TABLE(raw), 'op', 'id')").createOrReplaceTempView("t")
    spark
      .sql("SELECT * FROM from_changelog(TABLE(raw), 'op', 'id', 'upsert')")
      .createOrReplaceTempView("u")
    spark
      .range(5)
      .selectExpr("CAST(id AS INT) AS id", "'a' AS name")
      .createOrReplaceTempView("fixed")
  }

  /** Returns the risks of a query. */
  private def warnings(sql: String): Seq[String] = {
    views()
    val text = spark.sql(s"EXPLAIN CHANGELOG $sql").head().getString(0)
    text.linesIterator.filter(_.startsWith("! ")).map(_.drop(2)).toSeq
  }

  private def ofNodes(sql: String): Seq[String] =
    warnings(sql).filterNot(_.startsWith("only the reader"))

  private def hurts(sql: String)(said: String*): Unit = {
    val found = ofNodes(sql)
    assert(found.size == said.size, found)
    said.zip(found).foreach { case (part, warning) => assert(warning.contains(part), sql) }
  }

  private def isFine(sql: String): Unit = assert(ofNodes(sql).isEmpty, sql)

  private val groups = "SELECT city, count(*) FROM"

  test("groups of what only comes are kept for ever, unless something bounds them") {
    hurts(s"$groups rides GROUP BY city")(
      "ChangelogAggregate [city] keeps groups by (city) without bound, over insert-only input. " +
        "To bound the state, group by an event time with a watermark, or set " +
        "spark.sql.changelog.state.ttl")
    hurts("SELECT DISTINCT city FROM rides")("keeps groups by (city) without bound")
    // the groups of a table are no more than it has rows
    isFine(s"$groups t GROUP BY city")
    isFine(s"$groups u GROUP BY city")
    isFine("SELECT count(*), max(fare) FROM rides")
    isFine("SELECT window, count(*) FROM timed GROUP BY window(at, '1 hour')")
    hurts(s"SELECT n, count(*) FROM ($groups rides GROUP BY city) AS c(city, n) GROUP BY n")(
      "ChangelogAggregate [city] keeps")
  }

  test("the side of a join whose rows only come is kept for ever, unless time bounds it") {
    hurts("SELECT * FROM rides JOIN t ON rides.id = t.id")(
      "keeps left rows by (id, batch) without bound, over insert-only input. " +
        "To bound the state, join on event times of both sides")
    hurts("SELECT * FROM t LEFT JOIN rides ON rides.id = t.id")("keeps right rows by (id, batch)")
    hurts("SELECT * FROM rides a JOIN rides b ON a.id = b.id")(
      "left rows by (id, batch) and right")
    isFine("SELECT * FROM t a JOIN t b ON a.id = b.id")
    isFine("SELECT * FROM rides JOIN fixed ON rides.id = fixed.id")
    isFine("SELECT rides.*, name FROM rides JOIN lookup(TABLE(fixed)) f ON rides.id = f.id")
    isFine(
      "SELECT * FROM timed a JOIN timed b ON a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR")
  }

  test("one task keeps all rows where nothing distributes them") {
    val best =
      "SELECT * FROM (SELECT id, row_number() OVER (%s ORDER BY fare) AS r FROM %s) WHERE r < 9"
    hurts(best.format("", "t"))("ChangelogRank row_number [] keeps all rows in one task")
    isFine(best.format("PARTITION BY city", "t"))
    isFine(best.format("", "rides"))
    hurts("SELECT min(fare) FROM t")(
      "ChangelogAggregate [] keeps all rows in one task, because it has no groups")
    isFine("SELECT min(fare) FROM rides")
    isFine("SELECT sum(fare), count(*) FROM t")
    isFine("SELECT city, min(fare) FROM t GROUP BY city")
    val distinct = "SELECT count(DISTINCT fare) FROM t"
    hurts(distinct)("ChangelogAggregate [] keeps all rows in one task")
    spark.conf.set(ChangelogConf.DISTINCT_SPLIT_ENABLED.key, true)
    try isFine(distinct)
    finally spark.conf.unset(ChangelogConf.DISTINCT_SPLIT_ENABLED.key)
  }

  test("a group is computed again for each change where its function asks for that") {
    hurts("SELECT city, median(fare) FROM t GROUP BY city")("recomputes a whole group")
    isFine("SELECT city, avg(fare), max(fare), count(DISTINCT id) FROM t GROUP BY city")
    val window = "SELECT id, sum(fare) OVER (PARTITION BY city) AS s FROM t"
    hurts(window)("ChangelogWindow [city] recomputes a whole partition")
    hurts("SELECT id, sum(fare) OVER () AS s FROM t")(
      "in one task",
      "recomputes a whole partition")
    isFine("SELECT city, sum(fare) FROM t GROUP BY city")
  }

  test("a join compares all rows with all where there is no equality") {
    hurts("SELECT * FROM t a JOIN t b ON a.fare < b.fare")(
      "ChangelogJoin Inner joins without an equality")
    hurts("SELECT * FROM t a CROSS JOIN t b")("joins without an equality")
    isFine("SELECT * FROM t a JOIN t b ON a.city = b.city AND a.fare < b.fare")
    isFine("SELECT * FROM t CROSS JOIN fixed")
  }

  test(
    "where there are several partitions, many tasks rank all rows, and join without an equality") {
    val best =
      "SELECT * FROM (SELECT id, row_number() OVER (ORDER BY fare) AS r FROM t) WHERE r < 9"
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try {
      isFine(best)
      isFine("SELECT * FROM t ORDER BY fare LIMIT 10 OFFSET 2")
      hurts("SELECT * FROM t a RIGHT JOIN t b ON a.fare < b.fare")(
        "each change is compared with all rows of the other side, and left rows are stored 3 " +
          "times, once for each part of the right rows")
      hurts("SELECT * FROM t a FULL JOIN t b ON a.fare < b.fare")("one task keeps all rows")
      for ((setting, sql) <- Seq(
          ChangelogConf.RANK_TWO_LEVEL_ENABLED -> best,
          ChangelogConf.JOIN_SPREAD_ENABLED -> "SELECT * FROM t a CROSS JOIN t b")) {
        spark.conf.set(setting.key, false)
        try hurts(sql)("one task")
        finally spark.conf.unset(setting.key)
      }
    } finally spark.conf.set("spark.sql.shuffle.partitions", "1")
  }

  test("before images that only the reader needs are a risk") {
    def advice(sql: String) = warnings(sql).filter(_.startsWith("only the reader"))
    val totals = "SELECT city, sum(fare) AS total FROM t GROUP BY city"
    // the aggregate itself must take old rows of the table back
    assert(advice(totals).isEmpty)
    assert(
      advice("SELECT city, count(*) AS n FROM rides GROUP BY city") == Seq(
        "only the reader needs -U: if the reader can replace rows by (city), " +
          "use mode => 'upsert'"))
    assert(advice(
      "SELECT * FROM to_changelog(TABLE(SELECT city, count(*) FROM rides GROUP BY city), 'upsert')").isEmpty)
    // none of these do less if they send less
    Seq(
      "SELECT city FROM rides",
      "SELECT * FROM t",
      "SELECT t.*, name FROM t JOIN fixed ON t.id = fixed.id")
      .foreach(sql => assert(advice(sql).isEmpty))
    // there is nothing to replace rows by
    assert(advice("SELECT n FROM (SELECT city, count(*) AS n FROM rides GROUP BY city)").isEmpty)
  }

  private def run(sql: String): Unit = {
    val rides = new RawStream(spark, "rides", "id INT, city STRING, fare INT")
    val query = spark
      .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
      .writeStream
      .foreachBatch { (batch: DataFrame, _: Long) =>
        batch.collect()
        ()
      }
      .start()
    try
      (1 to 2).foreach { number =>
        rides.add(s"$number a 1")
        query.processAllAvailable()
      }
    finally query.stop()
  }

  test("a start logs the risks once") {
    val warned = LoggedWarnings("Risks")(run(s"$groups rides GROUP BY city"))
    assert(warned.size == 1 && warned.head.contains("groups by (city) without bound"), warned)
    assert(LoggedWarnings("Risks")(run("SELECT city FROM rides")).isEmpty)
  }
}
