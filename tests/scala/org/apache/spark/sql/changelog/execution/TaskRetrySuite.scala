// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Tasks that fail and are tried again, of every operator, with all state store providers. */
class TaskRetrySuite extends AnyFunSuite with ChangelogSession {

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.Interpreted ++ Map(
      "spark.master" -> "local[2,3]",
      "spark.sql.extensions" ->
        s"io.sparkchangelog.ChangelogExtensions,${classOf[FailingTasks].getName}"))

  private lazy val oracle = new Oracle(spark)

  private val t = Feed("t", "id INT, g STRING, v INT", Seq("id"))
  private val u = Feed("u", "g STRING, w INT")
  private val newest = t.copy(name = "n", upsert = true)
  private val times = Feed("e", "at TIMESTAMP, g STRING, v INT")

  private val steps = Seq(
    Step.of(
      t -> Seq("+I 1 a 5", "+I 2 b 3", "+I 3 c NULL", "+I 4 NULL 7", "+I 5 a 5"),
      newest -> Seq("+I 1 a 5", "+I 2 b 3", "+I 3 a 4"),
      times -> Seq(
        "+I 2024-01-01T00:00:00 a 1",
        "+I 2024-01-01T00:08:00 a 2",
        "+I 2024-01-01T00:04:00 b 3"),
      u -> Seq("+I a 1", "+I a 1", "+I b 4")),
    Step.of(
      t -> Seq("-U 1 a 5", "+U 1 a 6", "-D 2 b 3", "+I 6 b 2"),
      newest -> Seq("+U 1 b 9", "-D 2 b 3", "+I 4 c 1"),
      times -> Seq("+I 2024-01-01T00:05:00 a 4", "-D 2024-01-01T00:04:00 b 3"),
      u -> Seq("-D a 1", "+I c 5", "+I NULL 2")),
    Step.of(
      t -> Seq("-U 3 c NULL", "+U 3 b NULL", "-D 4 NULL 7", "-D 5 a 5"),
      newest -> Seq("-D 1 b 9", "+I 2 a 7"),
      times -> Seq("-D 2024-01-01T00:05:00 a 4"),
      u -> Seq("-D NULL 2", "-D b 4", "+I a 9")))

  Seq(
    "an aggregate" -> "SELECT g, sum(v), max(v), count(DISTINCT v) FROM t GROUP BY g",
    "an aggregate over an aggregate" -> "SELECT c, count(*), max(g) FROM (SELECT g, count(*) AS c FROM t GROUP BY g) GROUP BY c",
    "an inner join" -> "SELECT t.id, u.w FROM t JOIN u ON t.g = u.g",
    "an outer join" -> "SELECT t.id, u.w FROM t FULL JOIN u ON t.g = u.g AND t.v > u.w",
    "a semi and an anti join" -> "SELECT id FROM t LEFT SEMI JOIN u ON t.g = u.g UNION ALL SELECT -id FROM t LEFT ANTI JOIN u ON t.g = u.g",
    "a join of several inputs" -> "SELECT t.id, n.v, s.c FROM t JOIN n ON t.id = n.id JOIN (SELECT id, count(*) AS c FROM t GROUP BY id) s ON s.id = n.id",
    "the best rows" -> "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY g ORDER BY v DESC) AS r FROM t) WHERE r <= 2",
    "the first row of each key that only grows" -> "SELECT id, g, v FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM n) WHERE r = 1",
    "a limit" -> "SELECT * FROM t ORDER BY v DESC NULLS LAST, id LIMIT 2",
    "the newest rows" -> "SELECT g, collect_set(id) IS NULL, count(*) FROM n GROUP BY g",
    "groups computed anew" -> "SELECT g, median(v), count(*) FROM t GROUP BY g",
    "window functions" -> "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id), lag(v) OVER (PARTITION BY g ORDER BY id) FROM t",
    "sessions" -> "SELECT g, session_window.start, count(*), sum(v) FROM e GROUP BY g, session_window(at, '5 minutes')",
    "set operations" -> "SELECT g FROM t EXCEPT ALL SELECT g FROM u",
    "shared parts" -> "WITH s AS (SELECT g, sum(v) AS s FROM t GROUP BY g) SELECT a.g, b.s FROM s a LEFT JOIN s b ON a.s < b.s",
    "subqueries" -> "SELECT id, (SELECT max(w) FROM u WHERE u.g = t.g) AS m FROM t WHERE g IN (SELECT g FROM n) OR v > 5")
    .foreach { case (name, sql) =>
      test(s"$name, in tasks that fail") {
        val feeds = Seq(t, u, newest, times)
          .filter(feed => s"(FROM|JOIN) ${feed.name}\\b".r.findFirstIn(sql).isDefined)
        val names = feeds.map(_.name).toSet
        val read = steps.map(step => Step(step.changes.filter(names contains _._1)))
        Share.ofWays(Variant.Providers, name).foreach { case (provider, conf) =>
          val before = FailingTasks.count.get
          withClue(provider)(
            oracle.check(Program(feeds, sql, read), Variant(conf = conf ++ FailingTasks.On)))
          assert(FailingTasks.count.get > before)
        }
      }
    }
}
