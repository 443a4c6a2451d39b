// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** A retraction finds its row in each operator's state, whatever the bytes of its zeros, NaNs and maps. */
class EqualRowsSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Interpreted)

  private val raw = Feed("raw", "g STRING, x DOUBLE, tags STRING, at TIMESTAMP")

  /** The table `n`, in a batch query or a stream. */
  private def rows(source: String): String =
    s"""WITH n AS (
       |  SELECT * FROM $source)
       |""".stripMargin

  private val columns =
    """g, x, at, str_to_map(tags, ';', ':') AS tags,
      |  array(named_struct('x', CAST(x AS FLOAT), 'm', map('k', str_to_map(tags, ';', ':')))) AS deep""".stripMargin

  private val queries = Seq(
    "SELECT g, x, tags, deep FROM n",
    "SELECT a.g, a.x, b.deep FROM n a JOIN n b ON a.g = b.g",
    "SELECT g, x FROM n a WHERE NOT EXISTS (SELECT 1 FROM n b WHERE a.g = b.g AND b.x > 5)",
    "SELECT a.tags, b.deep FROM n a FULL JOIN n b ON a.x = b.x",
    "SELECT g, x, tags FROM n ORDER BY x, g LIMIT 2",
    "SELECT g, collect_list(x) AS l, collect_list(tags) AS m FROM n GROUP BY g",
    "SELECT g, max_by(deep, x) AS d FROM n GROUP BY g",
    "SELECT x, tags, count(*) AS c FROM n GROUP BY x, tags",
    "SELECT g, tags, row_number() OVER (PARTITION BY g ORDER BY x) AS r FROM n",
    "SELECT g, deep, at FROM n WHERE at > now() - INTERVAL 100 YEARS",
    "SELECT g, x FROM n UNION ALL SELECT g, x FROM n WHERE x <= 0")

  for (sql <- queries) test(s"a row taken back with other bytes: $sql") {
    val life = new QueryLife(spark, raw)
    val changes =
      s"from_changelog(TABLE(SELECT _op, $columns FROM raw_changes), change_type => '_op')"
    def run(): Unit = life.run(life.changes(rows(changes) + sql))
    val time = "2026-01-01T00:00:00"
    life.add(raw, s"+I a -0.0 k:1;l:2 $time", s"+I b 1.0 k:1;l:2 $time", s"+I b NaN k:1 $time")
    run()
    assert(life.result == life.expected(rows(s"(SELECT $columns FROM raw)") + sql))
    life.add(raw, s"-D a 0.0 l:2;k:1 $time", s"+I c -0.0 k:1 $time", s"-D c 0.0 k:1 $time")
    life.add(raw, s"-U b 1.0 l:2;k:1 $time", s"+U b 0.0 l:2;k:1 $time")
    run()
    val left = s"""(SELECT $columns FROM VALUES
                  |  ('b', 0.0D, 'k:1;l:2', TIMESTAMP'$time'), ('b', double('NaN'), 'k:1', TIMESTAMP'$time')
                  |  AS raw(g, x, tags, at))""".stripMargin
    assert(life.result == life.expected(rows(left) + sql))
  }
}
