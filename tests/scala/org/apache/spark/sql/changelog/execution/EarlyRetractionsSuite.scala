// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQueryException

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

  // at count 0 only sums of whole numbers and of decimals tell that rows are missing: a DOUBLE may differ by rounding
  test(
    "a group whose only aggregate is a sum of DOUBLE remembers a row that was taken back early") {
    pendingUntilFixed {
      val n = Feed("n", "g STRING, x DOUBLE")
      val sql = "SELECT g, sum(x) AS s FROM n GROUP BY g"
      val life = new QueryLife(spark, n)
      Seq("+I a 1.5", "-D a 2.5", "+I a 2.5").foreach { change =>
        life.add(n, change)
        life.run(life.changes(sql))
      }
      assert(life.result == life.expected(sql))
    }
  }

  private val n = Feed("n", "g STRING, v INT")

  for {
    feed <- Seq(n, n.copy(key = Seq("g")))
    sql <- Seq(
      "SELECT g, 10 / v AS x FROM n",
      "SELECT g FROM n WHERE 10 / v > 1",
      "SELECT g, sum(10 / v) AS s FROM n GROUP BY g",
      "SELECT a.g, b.v FROM n a JOIN n b ON a.g = b.g AND 10 / a.v > 1",
      "SELECT g, rank() OVER (ORDER BY 10 / v) AS r FROM n")
  }
    test(
      s"a row that can't be computed, and goes in the same batch, fails it once: $sql, key ${feed.key.size}") {
      val life = new QueryLife(spark, feed)
      def run(): Unit = life.run(life.changes(sql))
      life.add(feed, "+I a 5", "+I b 4")
      run()
      life.add(feed, "+I c 0", "-U b 4", "+U b 3")
      life.add(feed, "-D c 0", "+I d 2", "-U b 3", "+U b 2")
      assert(intercept[StreamingQueryException](run()).getMessage.contains("DIVIDE_BY_ZERO"))
      run()
      assert(life.result == life.expected(sql))
      life.add(feed, "-D b 2", "+I c 1")
      run()
      assert(life.result == life.expected(sql))
    }
}
