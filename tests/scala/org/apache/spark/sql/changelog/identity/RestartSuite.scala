// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** A query is begun again from its text, in whichever words, and goes on. */
class RestartSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.MostlyInterpreted)

  private val t = Feed("t", "id INT, g STRING, k INT, v INT")
  private val u = Feed("u", "id INT, g STRING, w INT")

  private def life(): QueryLife = {
    val life = new QueryLife(spark, t, u)
    life.add(t, "+I 1 a 1 10", "+I 2 a 2 NULL", "+I 3 b 1 7", "+I 4 NULL 3 5")
    life.add(u, "+I 1 a 10", "+I 2 b 20")
    life
  }

  private def more(life: QueryLife): Unit = {
    life.add(t, "-U 1 a 1 10", "+U 1 b 2 12", "-D 3 b 1 7", "+I 5 c 1 1")
    life.add(u, "-D 2 b 20", "+I 3 b 5", "+I 4 c 5")
  }

  /** Runs the second text on the checkpoint of the first, and compares with batch Spark. */
  private def checkGoesOn(
      first: String,
      second: String,
      conf: Map[String, String] = Map.empty,
      before: Map[String, String] = Map.empty,
      expected: Option[String] = None): Unit =
    withClue(s"$first $before\n-> $second $conf:\n") {
      val query = life()
      query.run(query.changes(first, before))
      assert(query.result == query.expected(expected.getOrElse(first)))
      more(query)
      query.run(query.changes(second, conf))
      assert(query.result == query.expected(expected.getOrElse(first)))
    }

  /** State whose columns Spark would name by a number that counts in the JVM. */
  private val counted = Seq(
    "SELECT g, count_if(v > 1) AS c FROM t GROUP BY g",
    "SELECT g, sum(nullif(v + k, 0)) FROM t GROUP BY g",
    "SELECT g, sum(CASE WHEN v + k BETWEEN 2 AND 20 THEN v END), max(nullif(v, 7)) FROM t GROUP BY g",
    "SELECT g, count(*) FILTER (WHERE v + k BETWEEN 2 AND 20) FROM t GROUP BY g",
    "SELECT g, count(DISTINCT nullif(v, 7)) FROM t GROUP BY g",
    "SELECT nullif(v + k, 0) AS n, count(*) FROM t GROUP BY nullif(v + k, 0)",
    "SELECT t.id, u.w FROM t LEFT JOIN u ON nullif(t.v, 7) = u.w AND u.w + t.k BETWEEN 1 AND 90",
    "SELECT * FROM t ORDER BY nullif(v + k, 0) DESC, id LIMIT 2",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.g = t.g AND u.w + t.k BETWEEN 1 AND 90)",
    "SELECT id, sum(nullif(v, 7)) OVER (PARTITION BY g) FROM t",
    "SELECT t.id, c.n, exists(array(t.v, t.k), x -> x > 1 AND exists(array(x), y -> y > x)) FROM t JOIN (VALUES (1, X'AA', map('a', 1)), (2, NULL, map())) AS c(id, n, m) ON t.id = c.id",
    "SELECT g, to_json(struct(v, k)), count(*) FROM t GROUP BY ALL",
    "SELECT g, collect_list(nullif(v, 7)) FROM t GROUP BY g HAVING count_if(v BETWEEN 1 AND 2) = 0")

  for (sql <- counted) test(s"from the same text: $sql") {
    checkGoesOn(sql, sql)
  }

  private val equivalent = Seq(
    (
      "SELECT g, sum(v) AS s FROM t WHERE k > 0 AND v > 1 GROUP BY g",
      "select x.g, SUM(x.v)  as total from t as x where x.v > 1 and x.k > 0 group by x.g"),
    (
      "SELECT t.id, u.w FROM t JOIN u ON t.id = u.id AND t.g = u.g AND t.v < u.w",
      "SELECT a.id, b.w FROM t a JOIN u b ON a.v < b.w AND a.g = b.g AND a.id = b.id"),
    (
      "SELECT c, count(*) FROM (SELECT g, count(*) AS c FROM t GROUP BY g) GROUP BY c",
      "WITH groups AS (SELECT g AS name, count(*) AS size FROM t GROUP BY g) SELECT size, count(*) FROM groups GROUP BY size"))

  for ((first, second) <- equivalent) test(s"in other words: $second") {
    checkGoesOn(first, second)
    checkGoesOn(second, first)
  }

  test("settings that lay out state are those the query began with") {
    val conf = Map("spark.sql.changelog.aggregate.distinctSplit.enabled" -> "true")
    val distinct = "SELECT g, count(DISTINCT v), sum(k) FROM t GROUP BY g"
    checkGoesOn(distinct, distinct, conf)
  }

  test("so are settings that say what expressions mean") {
    val sql = "SELECT g, sum(v) FROM t GROUP BY g"
    Seq(
      "spark.sql.session.timeZone" -> "Asia/Tokyo",
      "spark.sql.caseSensitive" -> "true",
      "spark.sql.ansi.enabled" -> "false").foreach { setting =>
      checkGoesOn(sql, sql, Map(setting))
    }
    // what today's setting would let fail
    checkGoesOn(
      "SELECT id, map_from_arrays(array('a', 'a'), array(v, k))['a'] FROM t",
      "SELECT id, map_from_arrays(array('a', 'a'), array(v, k))['a'] FROM t",
      before = Map("spark.sql.mapKeyDedupPolicy" -> "LAST_WIN"),
      expected = Some("SELECT id, k FROM t"))
  }

  test("the checkpoint goes on saying the settings that the query began with") {
    val query = life()
    val sql = "SELECT g, sum(v) FROM t GROUP BY g"
    query.run(query.changes(sql))
    more(query)
    val others = Map(
      "spark.sql.session.timeZone" -> "Asia/Tokyo",
      "spark.sql.caseSensitive" -> "true",
      "spark.sql.mapKeyDedupPolicy" -> "LAST_WIN")
    query.run(query.changes(sql, others))
    val settings = query.record.settings
    assert(others.keys.toSeq.sorted.map(settings) == Seq("false", "EXCEPTION", "UTC"), settings)
  }

  test("the first start of a query logs its risks, and a restart does not") {
    val query = life()
    def told = LoggedWarnings("Risks of the started query") {
      query.run(query.changes("SELECT g, count(*) FROM t_changes GROUP BY g"))
    }
    assert(told.size == 1)
    more(query)
    assert(told.isEmpty)
  }

  test("the checkpoint says what the query is") {
    val query = life()
    query.run(query.changes("SELECT g, sum(v) AS s FROM t WHERE k > 0 GROUP BY g"))
    val record = query.record
    assert(record.settings("spark.sql.session.timeZone") == "UTC")
    assert(record.sources == Seq(s"csv ${query.folder(t)}"))
    assert(record.operators.map(_.ids) == Seq(Seq(0L)))
    assert(record.lines.exists(_.contains("Filter GreaterThan(s1.k:int, 0:int)")), record.toJson)
  }
}
