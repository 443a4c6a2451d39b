// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.functions.udf

import org.apache.spark.sql.changelog.testing._

/** The forms a query can take in SQL, each over tables of which several change in one batch. */
class QueryShapesSuite extends AnyFunSuite with ChangelogSession {
  import QueryShapesSuite._

  private lazy val oracle = {
    val oracle = new Oracle(spark)
    oracle.inSessions { session =>
      functions.foreach(session.sql)
      session.udf.register("halved", udf((x: Int) => x / 2))
    }
    oracle
  }

  private val t = Feed("t", "id INT, g STRING, v INT", Seq("id"))
  private val u = Feed("u", "g STRING, w INT")

  private val steps = Seq(
    Step.of(
      t -> Seq("+I 1 a 5", "+I 2 b 3", "+I 3 A NULL", "+I 4 NULL 7", "+I 5 a 5"),
      u -> Seq("+I a 1", "+I a 1", "+I b 4")),
    Step.of(
      t -> Seq("-U 1 a 5", "+U 1 a 6", "-D 2 b 3", "+I 6 B 2"),
      u -> Seq("-D a 1", "+I c 5", "+I NULL 2")),
    Step.of(
      t -> Seq("-U 3 A NULL", "+U 3 b NULL", "-D 4 NULL 7"),
      u -> Seq("-D NULL 2", "-D b 4", "+I a 9")),
    Step.of(t -> Seq("-D 1 a 6", "+I 7 c 5", "-D 6 B 2"), u -> Seq("-D a 1", "-D c 5")))

  Seq(
    "ranks in the order of a collation" -> Seq(
      "SELECT * FROM (SELECT *, rank() OVER (ORDER BY g COLLATE UTF8_LCASE DESC) AS r FROM t) WHERE r <= 2",
      "SELECT id FROM (SELECT *, row_number() OVER (PARTITION BY g COLLATE UTF8_LCASE ORDER BY g COLLATE UNICODE_CI, v DESC NULLS LAST, id) AS r FROM t) WHERE r = 1",
      "SELECT * FROM t ORDER BY g COLLATE UTF8_LCASE NULLS LAST, id DESC LIMIT 2 OFFSET 1"),
    "a limit over a limit, and over what a limit gives" -> Seq(
      "SELECT * FROM (SELECT * FROM t ORDER BY id DESC LIMIT 4 OFFSET 1) ORDER BY v DESC, id LIMIT 2",
      "SELECT g, count(*) AS c FROM (SELECT * FROM t ORDER BY v DESC, id LIMIT 3) GROUP BY g ORDER BY c DESC, g LIMIT 1"),
    "IN, NOT IN, EXISTS and scalar subqueries under OR, CASE and in SELECT" -> Seq(
      "SELECT id FROM t WHERE g NOT IN (SELECT g FROM u) OR v = 5",
      "SELECT id FROM t WHERE g IN (SELECT g FROM u WHERE w > 1) OR NOT EXISTS (SELECT 1 FROM u WHERE w > t.v)",
      "SELECT id, g IN (SELECT g FROM u) AS i, v NOT IN (SELECT w FROM u) AS n FROM t",
      "SELECT id, CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.g = t.g) THEN (SELECT max(w) FROM u) ELSE (SELECT sum(w) FROM u WHERE w < t.v) END AS x FROM t",
      "SELECT g, sum(v) AS s FROM t GROUP BY g HAVING sum(v) > (SELECT min(w) FROM u) OR g IN (SELECT g FROM u)"),
    "LATERAL subqueries" -> Seq(
      "SELECT t.id, l.* FROM t, LATERAL (SELECT count(*) AS c, max(w) AS m FROM u WHERE u.g = t.g) l",
      "SELECT t.id, l.w FROM t LEFT JOIN LATERAL (SELECT w FROM u WHERE u.w < t.v ORDER BY w DESC LIMIT 1) l",
      "SELECT t.id, l.x FROM t, LATERAL explode(array(t.v, t.id)) AS l(x)"),
    "set operations" -> Seq(
      "SELECT g FROM t UNION SELECT g FROM u",
      "SELECT g, v FROM t UNION ALL SELECT * FROM u",
      "SELECT g FROM t INTERSECT SELECT g FROM u",
      "SELECT g FROM t INTERSECT ALL SELECT g FROM u",
      "SELECT g FROM t EXCEPT SELECT g FROM u",
      "SELECT g FROM t EXCEPT ALL SELECT g FROM u",
      "SELECT * FROM VALUES ('a', 1), ('x', 2) AS s(g, n) EXCEPT SELECT * FROM u"),
    "columns one side of a set operation can't have NULL in" -> Seq(
      "SELECT 1 AS x, g FROM t INTERSECT ALL SELECT v, g FROM t",
      "SELECT id, CAST(1.5 AS DECIMAL(5,2)) AS d FROM t EXCEPT ALL SELECT w, CAST(w AS DECIMAL(5,2)) FROM u WHERE w IS NULL"),
    "a common table read several times, and one table as several" -> Seq(
      "WITH s AS (SELECT g, sum(v) AS s FROM t GROUP BY g) SELECT a.g, a.s, b.s AS o FROM s a LEFT JOIN s b ON a.s < b.s",
      "WITH s AS (SELECT g, count(*) AS c FROM t GROUP BY g) SELECT * FROM s WHERE c = (SELECT max(c) FROM s)",
      "SELECT a.id, b.id AS o, c.n FROM t a JOIN t b ON a.v = b.v AND a.id < b.id JOIN (SELECT v, count(*) AS n FROM t GROUP BY v) c ON c.v = a.v",
      "SELECT t.id, c.g FROM t JOIN (SELECT g, count(*) AS n FROM t GROUP BY g) c ON c.n = t.v - 4",
      "SELECT t.id, c.g FROM t FULL JOIN (SELECT g, max(v) AS m FROM t GROUP BY g) c ON c.m = t.v JOIN u ON u.g = c.g",
      "SELECT g FROM t a LEFT ANTI JOIN t b ON a.id = b.id AND exists(array(b.v), e -> e > b.v - 2) WHERE a.v < (SELECT max(v) FROM t)"),
    "PIVOT and UNPIVOT" -> Seq(
      "SELECT * FROM (SELECT g, v, id FROM t) PIVOT (sum(v) AS s, count(id) AS c FOR g IN ('a', 'b'))",
      "SELECT * FROM (SELECT id, v, id * 2 AS w FROM t) UNPIVOT (x FOR name IN (v, w))",
      "SELECT * FROM (SELECT id, v, id * 2 AS w FROM t) UNPIVOT INCLUDE NULLS (x FOR name IN (v, w))"),
    "generators" -> Seq(
      "SELECT id, p, x FROM t LATERAL VIEW OUTER posexplode(if(v > 4, array(v, id), array())) AS p, x",
      "SELECT inline(array(named_struct('n', id, 's', g), named_struct('n', v, 's', 'x'))) FROM t",
      "SELECT stack(2, id, 'id', v, 'v') FROM t",
      "SELECT id, k, x FROM t LATERAL VIEW explode(map('id', id, 'v', v)) AS k, x"),
    "pipes" -> Seq(
      "FROM t |> WHERE v IS NOT NULL |> EXTEND v * 2 AS d |> AGGREGATE sum(d) AS s, count(*) AS c GROUP BY g |> WHERE s > 4 |> DROP c",
      "FROM t |> AS x |> LEFT JOIN u ON x.g = u.g |> SELECT x.id, w |> UNION ALL (SELECT 0, w FROM u) |> ORDER BY id DESC, w |> LIMIT 3",
      "FROM t |> SET v = v + 1 |> SELECT *, sum(v) OVER (PARTITION BY g ORDER BY id) AS s"),
    "functions written in SQL and Scala, and of higher order" -> Seq(
      "SELECT id, twice(v) AS d, halved(id) AS h FROM t WHERE halved(twice(id)) > 1",
      "SELECT t.id, c.n FROM t, LATERAL copies(t.id) c",
      "SELECT most(g) AS m, count(*) AS c FROM (SELECT DISTINCT g FROM t) GROUP BY 1",
      "SELECT id, transform(array(v, id), (e, i) -> e + i) AS x, aggregate(filter(array(v, id), e -> e > 2), 0, (s, e) -> s + e) AS y FROM t",
      "SELECT id, map_filter(map('a', v, 'b', id), (k, e) -> e > 3)['a'] AS m, exists(array(v), e -> e > 4) AS e FROM t"),
    "expressions that could fail, and those that can't" -> Seq(
      "SELECT id, try_cast(g AS INT) AS n, try_divide(v, id - 5) AS q, CASE WHEN id <> 5 THEN v / (id - 5) END AS c FROM t",
      "SELECT id, CAST(v AS STRING) || coalesce(g, '?') AS s, nullif(v, 5) AS n, CAST(id AS DECIMAL(4,1)) / 3 AS d FROM t"))
    .foreach { case (name, queries) =>
      test(s"$name are as in batch") {
        Share.of(queries, oneIn = 2).foreach { sql =>
          val feeds = Seq(t, u).filter(feed =>
            s"\\b(FROM|JOIN|,) ${feed.name}\\b".r.findFirstIn(sql).isDefined)
          val names = feeds.map(_.name).toSet
          val read = steps.map(step => Step(step.changes.filter(names contains _._1)))
          withClue(sql)(oracle.check(Program(feeds, sql, read), Variant(conf = Quick)))
        }
      }
    }
}

private object QueryShapesSuite {
  val functions: Seq[String] = Seq(
    "twice(x INT) RETURNS INT RETURN 2 * x",
    "copies(x INT) RETURNS TABLE (n INT) RETURN SELECT x + e FROM explode(array(0, 10)) AS v(e)",
    "most(x STRING) RETURNS INT RETURN SELECT max(w) FROM VALUES ('a', 3), ('b', 4) AS s(g, w) WHERE s.g = x")
    .map("CREATE OR REPLACE TEMPORARY FUNCTION " + _)

  val Quick: Map[String, String] =
    ChangelogSession.Interpreted + ("spark.sql.shuffle.partitions" -> "2")
}
