// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Rows that never change, among rows that do. */
class StaticRowsSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private lazy val oracle = new Oracle(spark)
  private val rides = Feed("rides", "id INT, city STRING, fare INT", key = Seq("id"))
  private val steps = Seq(
    Step(rides, "+I 1 Oslo 5", "+I 2 Rome 7"),
    Step(rides, "-U 1 Oslo 5", "+U 1 Rome 6"),
    Step(rides),
    Step(rides, "-D 1 Rome 6", "-D 2 Rome 7", "+I 3 Bern 1"))
  private val cities = "VALUES ('Oslo', 'NO'), ('Rome', 'IT'), ('Rome', NULL) AS c(name, country)"

  private def check(sql: String): Unit =
    Share.check(oracle, Program(Seq(rides), sql, steps), Seq(Variant(restart = true)))

  test("static rows of a union come once") {
    check(s"SELECT city, 'ride' AS what FROM rides UNION ALL SELECT name, country FROM $cities")
    check(
      s"SELECT city, count(*) FROM (SELECT city FROM rides UNION ALL SELECT name FROM $cities) GROUP BY city")
    check(s"SELECT name FROM $cities EXCEPT SELECT city FROM rides")
  }

  test("a static side is kept where its rows come out by themselves") {
    Seq("LEFT", "FULL").foreach { kind =>
      check(s"SELECT * FROM $cities $kind JOIN rides ON city = name")
    }
    check(s"SELECT * FROM rides RIGHT JOIN $cities ON city = name AND fare > 5")
    check(s"SELECT * FROM $cities WHERE name NOT IN (SELECT city FROM rides)")
    check(
      s"SELECT * FROM $cities WHERE EXISTS (SELECT * FROM rides WHERE city = name) OR country IS NULL")
  }

  test("a SELECT without FROM holds subqueries over changing rows") {
    check("SELECT (SELECT max(fare) FROM rides) AS most, 1 AS one")
  }

  test("a join with no or few static rows still reads all changes") {
    val counts = "(SELECT city, count(*) AS n FROM rides GROUP BY city)"
    val none = "(SELECT * FROM VALUES ('Oslo', 1) AS v(name, i) WHERE i > rand(1) + 5)"
    Seq("name = city", "n > length(name)", "true").foreach { condition =>
      check(s"SELECT * FROM $counts c JOIN $none s ON $condition")
      check(s"SELECT c.* FROM $counts c LEFT ANTI JOIN $none s ON $condition")
    }
    withSetting("spark.sql.autoBroadcastJoinThreshold", "-1") {
      check(s"SELECT * FROM $counts c JOIN $none s ON name = city")
      check(s"SELECT * FROM $counts c JOIN $cities ON n < length(name)")
    }
  }

  test("limits, offsets and ranks of static rows are as in batch") {
    val second = s"(SELECT name FROM $cities ORDER BY name, country LIMIT 1 OFFSET 1)"
    check(s"SELECT city FROM rides UNION ALL SELECT name FROM $second")
    val ranked =
      s"(SELECT *, row_number() OVER (ORDER BY name, country) AS place FROM $cities)"
    check(
      s"SELECT city, place FROM rides JOIN (SELECT * FROM $ranked WHERE place < 3) ON city = name")
  }

  private def withSetting(key: String, value: String)(body: => Unit): Unit = {
    spark.conf.set(key, value)
    try body
    finally spark.conf.unset(key)
  }

  test("what the optimizer finds to be empty or constant still has its result") {
    check("SELECT city FROM rides WHERE fare > 5 AND fare < 3")
    check("SELECT count(*) FROM rides WHERE 1 = 0")
    check("SELECT city FROM rides WHERE 1 = 0 UNION ALL SELECT name FROM VALUES ('a') AS v(name)")
  }
}
