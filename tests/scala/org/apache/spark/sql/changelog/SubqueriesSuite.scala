// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Subqueries over changing tables wherever an expression may stand, against batch Spark. */
class SubqueriesSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Interpreted)

  import SubqueriesSuite._

  private lazy val oracle = new Oracle(spark)

  private val t = Feed("t", "id INT, g STRING, k INT, v INT", Seq("id"))
  private val u = Feed("u", "id INT, g STRING, w INT, s STRING")

  /** What stands at the end is there from the first step on in part, twice, or in another form. */
  private val steps = Seq(
    Step.of(
      t -> Seq("+I 1 a 1 10", "+I 2 a 2 NULL", "+I 3 b 1 20", "+I 4 NULL NULL 5"),
      u -> Seq("+I 1 a 10 foo", "+I 2 b 20 Foo", "+I 2 b 20 Foo")),
    Step.of(
      t -> Seq("-U 3 b 1 20", "+U 3 A 1 10", "+I 5 b 3 7", "+I 6 c 3 7"),
      u -> Seq("+I 1 a 10 foo", "-D 2 b 20 Foo", "+I NULL NULL NULL NULL")),
    Step.of(t -> Seq("-D 6 c 3 7")),
    Step.of(u -> Seq("-D 1 a 10 foo", "-D NULL NULL NULL NULL", "+I 5 c NULL x")))

  queries.foreach { case (subject, texts) =>
    Share.of(texts.zipWithIndex, oneIn = 5).foreach { case (query, index) =>
      test(s"$subject, ${index + 1}") {
        oracle.check(Program(Seq(t, u), query, steps))
      }
    }
  }

  test("a table of files that is read again below groups, with a column twice") {
    val query = """SELECT 1 FROM a LEFT JOIN LATERAL (
      |  SELECT x, y FROM (SELECT c1 AS x, 1 AS y FROM b UNION SELECT a.c1 AS x, NULL AS y) i
      |  WHERE (i.x < a.c2 OR i.x IS NULL) AND i.x = a.c1 ORDER BY x, y DESC LIMIT 1)""".stripMargin
    val feeds = Seq("a", "b").map(Feed(_, "c1 INT, c2 INT"))
    val steps = Seq(
      Step.of(feeds(0) -> Seq("+I 0 1", "+I 1 2"), feeds(1) -> Seq("+I 0 1")),
      Step.of(feeds(0) -> Seq("-D 0 1"), feeds(1) -> Seq("+I 1 2", "-D 0 1")))
    oracle.check(Program(feeds, query, steps), Variant(sources = Seq(new FeedFiles("parquet"))))
  }

  test("a predicate beside a correlated one, at which batch Spark fails, is refused") {
    val query = """SELECT id FROM t WHERE EXISTS (
      |  SELECT 1 FROM u WHERE u.w < t.v OR u.g IN (SELECT g FROM t WHERE k = 1))""".stripMargin
    val steps = Seq(Step.of(t -> Seq("+I 1 a 1 10"), u -> Seq("+I 1 a 10 foo")))
    val refusal = intercept[AnalysisException](oracle.check(Program(Seq(t, u), query, steps)))
    assert(refusal.getCondition == "CHANGELOG_SUBQUERY_NOT_SUPPORTED")
  }

  test("streams that only insert, within subqueries") {
    val orders = new RawStream(spark, "orders", "id INT, k INT")
    val closed = new RawStream(spark, "closed", "k INT")
    val query = """SELECT id, (SELECT count(*) FROM closed) AS n FROM orders
      |WHERE k NOT IN (SELECT k FROM closed)""".stripMargin
    val running = new RunningChanges(
      spark.sql(s"SELECT * FROM to_changelog(TABLE($query))"),
      QuickFileSystem.temporaryDirectory())
    try {
      orders.add("1 1", "2 2")
      assert(running.next() == Seq("1 0 insert", "2 0 insert"))
      closed.add("2")
      assert(running.next() == Seq("1 0 delete", "1 1 insert", "2 0 delete"))
    } finally running.stop()
  }
}

private object SubqueriesSuite {
  val queries: Seq[(String, Seq[String])] = Seq(
    "three-valued logic" -> Seq(
      "SELECT id FROM t WHERE NOT (g IN (SELECT g FROM u) AND v > 5)",
      "SELECT id FROM t WHERE NOT (k IN (SELECT w FROM u) AND true)",
      "SELECT id FROM t WHERE (g IN (SELECT g FROM u) AND v > 5) = false",
      "SELECT id FROM t WHERE (g IN (SELECT g FROM u) OR v > 8) <> true",
      "SELECT id FROM t WHERE NOT (NOT (g IN (SELECT g FROM u)))",
      "SELECT id, NOT (g IN (SELECT g FROM u) AND v > 5) AS x FROM t",
      "SELECT id, if(NOT (g IN (SELECT g FROM u) AND v > 5), 1, 2) AS x FROM t",
      "SELECT g, sum(v) AS s FROM t GROUP BY g HAVING NOT (g IN (SELECT g FROM u) AND sum(v) > 5)",
      "SELECT t.id, u.w FROM t JOIN u ON NOT (t.g IN (SELECT g FROM u) AND t.v > u.w - 5)",
      "SELECT id FROM t WHERE NOT ((g, v) IN (SELECT g, w FROM u) AND k = 1)",
      "SELECT id FROM t WHERE (g, v) NOT IN (SELECT g, w FROM u)"),
    "whether there is a row at all" -> Seq(
      "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE id IS NULL)",
      "SELECT id, EXISTS (SELECT s FROM u WHERE id IS NULL LIMIT 1) AS e FROM t",
      "SELECT g, count(*) AS n FROM t WHERE NOT EXISTS (SELECT g, max(w) FROM u GROUP BY g HAVING count(*) > 2) GROUP BY g",
      "SELECT id FROM t WHERE NOT EXISTS (SELECT g FROM u INTERSECT SELECT 'c')",
      "SELECT coalesce((SELECT 1 FROM u WHERE id IS NULL LIMIT 1), 0) + id AS x FROM t"),
    "values within aggregates" -> Seq(
      "SELECT mode() WITHIN GROUP (ORDER BY (SELECT max(s) FROM u)) AS m FROM t",
      "SELECT id, (SELECT sum(v + (SELECT max(w) FROM u)) FROM t WHERE g = 'a') AS m FROM u",
      "SELECT id, (SELECT mode() WITHIN GROUP (ORDER BY (SELECT max(s) FROM u)) FROM u RIGHT JOIN (SELECT * FROM t WHERE g <> g) r ON u.id BETWEEN u.id AND u.w) AS m FROM t"),
    "values in set operations" -> Seq(
      "SELECT s, g FROM u EXCEPT SELECT (SELECT min(s) FROM u WHERE u.s = t.g), g FROM t"),
    "rows skipped for each outer row" -> Seq(
      "SELECT t.id, l.w FROM t, LATERAL (SELECT w FROM u WHERE u.g = t.g ORDER BY w OFFSET 1) l",
      "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.g = t.g ORDER BY w OFFSET 1)",
      "SELECT id, (SELECT count(*) FROM (SELECT w FROM u WHERE u.g = t.g ORDER BY w OFFSET 1)) AS c FROM t",
      "SELECT id, (SELECT count(*) FROM (SELECT w FROM u WHERE u.g = t.g OFFSET 0)) AS c FROM t"),
    "limits of each outer row" -> Seq(
      "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.g = t.g LIMIT 1)",
      "SELECT t.id, l.g FROM t, LATERAL (SELECT g FROM u WHERE u.g = t.g LIMIT 1) l",
      "SELECT t.id, l.w FROM t, LATERAL (SELECT w FROM u WHERE u.g = t.g ORDER BY w LIMIT 1 OFFSET 1) l",
      "SELECT t.id, l.g FROM t, LATERAL (SELECT DISTINCT g FROM u WHERE u.g = t.g LIMIT 1) l",
      "SELECT id FROM t WHERE EXISTS (SELECT DISTINCT w FROM u WHERE u.g = t.g LIMIT 2)",
      "SELECT id FROM t WHERE k NOT IN (SELECT id FROM u WHERE w > t.v ORDER BY w DESC, id LIMIT 1 OFFSET 1)",
      "SELECT t.id, l.w FROM t LEFT JOIN LATERAL (SELECT w FROM u WHERE u.w >= t.v ORDER BY w, s LIMIT 2) l"),
    "what the outer rows read as they are and in other columns" -> Seq(
      "SELECT id, (SELECT max(v) FROM t z WHERE z.k = q.k) AS m FROM (SELECT x.id, y.k FROM t x FULL JOIN t y ON x.k = y.k AND x.id < y.id) q"),
    "subqueries in subqueries" -> Seq(
      "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.g = t.g AND EXISTS (SELECT 1 FROM t t2 WHERE t2.v = u.w))",
      "SELECT id FROM t WHERE g IN (SELECT g FROM u WHERE w IN (SELECT v FROM t t2 WHERE t2.g = u.g))",
      "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.g = t.g AND u.w > (SELECT min(v) FROM t t2 WHERE t2.g = u.g))",
      "SELECT id FROM t WHERE v IN (SELECT w FROM u WHERE u.g = t.g AND u.id IN (SELECT k FROM t t2 WHERE t2.g = u.g))",
      "SELECT id, (SELECT count(*) FROM u WHERE w > (SELECT avg(v) FROM t)) AS c FROM t",
      "SELECT id FROM t WHERE g NOT IN (SELECT g FROM u WHERE w NOT IN (SELECT v FROM t))"),
    "a value in a join's condition" -> Seq(
      "SELECT t.id, u.w FROM t LEFT JOIN u ON t.g = u.g AND t.v + u.w > (SELECT max(w) FROM u)",
      "SELECT t.id, u.w FROM t JOIN u ON t.g = u.g AND t.v + u.w > (SELECT max(w) FROM u)",
      "SELECT t.id, u.w FROM t FULL JOIN u ON t.g = u.g AND t.v + u.w >= (SELECT max(w) FROM u)",
      "SELECT t.id, u.w FROM t RIGHT JOIN u ON t.g = u.g AND t.v < (SELECT max(w) FROM u)",
      "SELECT t.id FROM t LEFT ANTI JOIN u ON t.g = u.g AND t.v + u.w > (SELECT max(w) FROM u)"),
    "a value anywhere" -> Seq(
      "SELECT id, explode(array(v, (SELECT max(w) FROM u))) AS x FROM t",
      "SELECT id FROM t ORDER BY v + (SELECT max(w) FROM u), id LIMIT 2",
      "SELECT id, (SELECT max(w) FROM u) AS m FROM (SELECT * FROM t ORDER BY v DESC, id LIMIT 2 OFFSET 1)",
      "SELECT id, EXISTS (SELECT w FROM u WHERE u.g = t.g) AS e FROM (SELECT * FROM t ORDER BY v, id LIMIT 2) t",
      "SELECT id, (SELECT max(w) FROM u WHERE u.g = t.g) AS m FROM t ORDER BY m DESC, id LIMIT 2",
      "SELECT id, sum(v + (SELECT max(w) FROM u)) OVER (PARTITION BY g ORDER BY id) AS s FROM t"),
    "a value beside aggregates" -> Seq(
      "SELECT g, sum(v) AS s, (SELECT max(w) FROM u) AS m FROM t GROUP BY g",
      "SELECT g, 100.0 * sum(v) / (SELECT sum(v) FROM t) AS s FROM t GROUP BY g",
      "SELECT sum(v) + (SELECT max(w) FROM u) AS s FROM t",
      "SELECT g, k, sum(v) AS s, (SELECT max(w) FROM u) AS m FROM t GROUP BY ROLLUP (g, k)",
      "SELECT g, sum(v * (SELECT max(w) FROM u)) AS s, (SELECT max(w) FROM u) AS m FROM t GROUP BY g",
      "SELECT v > (SELECT min(w) FROM u) AS big, count(*) AS c FROM t GROUP BY v > (SELECT min(w) FROM u)"),
    "a table joined with itself on nothing of the left" -> Seq(
      "SELECT x FROM (SELECT k + 1 AS x FROM t WHERE g <=> (SELECT min(s) FROM u)) a LEFT ANTI JOIN t b ON b.v = 7",
      "SELECT x FROM (SELECT k + 1 AS x FROM t WHERE v > 5) a LEFT SEMI JOIN t b ON b.v = 7",
      "SELECT x, count(*) AS n FROM (SELECT k + 1 AS x FROM t) a LEFT SEMI JOIN (SELECT v * 2 AS y FROM t) b ON y > 20 GROUP BY x",
      "SELECT x FROM (SELECT k + 1 AS x FROM t) a LEFT ANTI JOIN t b ON b.v + a.x > 20 AND b.g IN (SELECT g FROM u)"),
    "counts, unions and common tables" -> Seq(
      "SELECT id, EXISTS (SELECT count(*) FROM u WHERE u.g = t.g) AS e FROM t",
      "SELECT g, count(*) AS c FROM t GROUP BY g HAVING EXISTS (SELECT count(*) FROM u WHERE u.g = t.g HAVING count(*) > 1)",
      "SELECT t.id, l.x FROM t, LATERAL (SELECT w AS x FROM u WHERE u.g = t.g UNION ALL SELECT t.v) l",
      "SELECT id, (WITH m AS (SELECT w FROM u WHERE u.g = t.g) SELECT max(w) FROM m) AS x FROM t",
      "SELECT id FROM t WHERE EXISTS (WITH m AS (SELECT w FROM u) SELECT 1 FROM m WHERE m.w = t.v)",
      "SELECT id FROM t WHERE k IN (SELECT count(*) + 1 FROM u GROUP BY g)",
      "SELECT id, (SELECT count(DISTINCT w) + count(DISTINCT s) FROM u) AS d FROM t",
      "SELECT id, (SELECT count(DISTINCT w) + count(DISTINCT s) FROM u WHERE u.g = t.g) AS d FROM t",
      "SELECT id FROM t WHERE EXISTS (SELECT count(*) + 1 FROM u WHERE u.g = t.g) OR NOT EXISTS (SELECT count(*) - 1 FROM u WHERE u.g = t.g)",
      "WITH c AS (SELECT * FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.g = u.g)) SELECT id FROM t WHERE EXISTS (SELECT 1 FROM c WHERE c.w = t.v)"))
}
