// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/**
 * Rows that are taken back before they come leave nothing behind, whichever operator keeps them meanwhile. Results are
 * compared when the inserts have come: until then a count of a group is too low by those.
 */
class EarlyRetractionsSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Interpreted)

  private val t = Feed("t", "id INT, g STRING, v INT, at TIMESTAMP")
  private val u = Feed("u", "g STRING, w INT")

  private val queries = Seq(
    "SELECT g, count(*) AS c, sum(v) AS s, max(v) AS m FROM t GROUP BY g",
    "SELECT count(*) AS c, min(v) AS m FROM t",
    "SELECT g, count(DISTINCT v) AS c, median(v) AS m FROM t GROUP BY g",
    "SELECT g, collect_list(v) AS l FROM t GROUP BY g",
    "SELECT DISTINCT g FROM t",
    "SELECT t.id, u.w FROM t JOIN u ON t.g = u.g",
    "SELECT g, count(w) AS c, count(*) AS n FROM (SELECT t.g, u.w FROM t LEFT JOIN u ON t.g = u.g) GROUP BY g",
    "SELECT count(*) AS n FROM t FULL JOIN u ON t.g = u.g",
    "SELECT g, w FROM u WHERE g IN (SELECT g FROM t)",
    "SELECT g, w FROM u WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.g = u.g)",
    "SELECT id, g, v FROM t ORDER BY v, id LIMIT 2",
    "SELECT g, max(r) AS r FROM (SELECT g, rank() OVER (PARTITION BY g ORDER BY v) AS r FROM t) GROUP BY g",
    "SELECT g, v FROM t INTERSECT SELECT g, w FROM u",
    "SELECT g, w FROM u EXCEPT ALL SELECT g, v FROM t",
    "SELECT g, window.start AS at, count(*) AS c FROM t GROUP BY g, window(at, '1 hour')",
    "SELECT g, session_window.start AS at, count(*) AS c FROM t GROUP BY g, session_window(at, '1 hour')",
    "SELECT id, at FROM t WHERE at > now() - INTERVAL 100 YEARS")

  for (sql <- queries) test(sql) {
    val life = new QueryLife(spark, t, u)
    def check(): Unit = {
      run()
      assert(life.result == life.expected(sql))
    }
    def run(): Unit = life.run(life.changes(sql))
    life.add(t, "-D 1 a 1 2026-01-01T00:00:00", "+I 2 b 2 2026-01-01T00:00:00")
    life.add(u, "+I b 2")
    run()
    life.add(t, "-D 3 b 1 2026-01-01T00:10:00", "-D 3 b 1 2026-01-01T00:10:00")
    life.add(u, "-D a 1", "+I a 2")
    run()
    life.add(t, "+I 1 a 1 2026-01-01T00:00:00", "+I 3 b 1 2026-01-01T00:10:00")
    run()
    life.add(t, "+I 3 b 1 2026-01-01T00:10:00")
    life.add(u, "+I a 1")
    check()
    life.add(t, "+I 1 a 1 2026-01-01T00:00:00")
    check()
    life.add(t, "+I 3 b 1 2026-01-01T00:10:00", "-D 2 b 2 2026-01-01T00:00:00")
    check()
  }
}
