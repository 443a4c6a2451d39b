// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.expiry

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** Queries emit and keep the same whether what is due is found by an index or by a search. */
class TimeIndexLifeSuite extends AnyFunSuite with TimedChanges {
  private val columns = "ts TIMESTAMP, k INT, v INT"
  private val bound = "r.ts BETWEEN l.ts - INTERVAL 5 MINUTES AND l.ts + INTERVAL 3 MINUTES"
  private val sides =
    ", l AS (SELECT * FROM t WHERE v % 2 = 0), r AS (SELECT * FROM t WHERE v % 2 = 1) "
  private val version =
    "LATERAL (SELECT * FROM r x WHERE x.k = l.k AND x.ts <= l.ts ORDER BY x.ts DESC, x.v LIMIT 1) r"

  private val queries: Seq[(String, String, String)] = Seq(
    (
      "windows",
      "retract",
      "SELECT window(ts, '7 minutes') AS w, k, min(v), count(DISTINCT v) FROM t GROUP BY 1, 2"),
    (
      "closed windows",
      "append",
      "SELECT window(ts, '7 minutes') AS w, k, count(*), max(v) FROM t GROUP BY 1, 2"),
    (
      "an inner join",
      "retract",
      s"$sides SELECT l.v AS lv, r.v AS rv FROM l JOIN r ON l.k = r.k AND $bound"),
    (
      "an outer join",
      "retract",
      s"$sides SELECT l.v AS lv, r.v AS rv FROM l FULL JOIN r ON l.k = r.k AND $bound"),
    (
      "a temporal join",
      "retract",
      s"$sides SELECT l.v AS lv, r.v AS rv FROM l LEFT JOIN $version"),
    (
      "a final temporal join",
      "append",
      s"$sides SELECT l.v AS lv, r.v AS rv FROM l LEFT JOIN $version"),
    (
      "sessions",
      "retract",
      "SELECT session_window(ts, '3 minutes') AS s, k, count(*) FROM t GROUP BY 1, 2"),
    (
      "closed sessions",
      "append",
      "SELECT session_window(ts, '3 minutes') AS s, k, count(*) FROM t GROUP BY 1, 2"),
    (
      "the best of windows",
      "retract",
      "SELECT w, k, v FROM (SELECT *, row_number() OVER (PARTITION BY w, k ORDER BY v) AS n FROM (SELECT *, window(ts, '7 minutes') AS w FROM t)) WHERE n <= 2"),
    (
      "the earliest",
      "append",
      "SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k, v % 7 ORDER BY ts) AS n FROM t) WHERE n = 1"),
    (
      "the earliest of windows",
      "append",
      "SELECT w, k, v FROM (SELECT *, row_number() OVER (PARTITION BY w, k ORDER BY ts) AS n FROM (SELECT *, window(ts, '7 minutes') AS w FROM t)) WHERE n = 1"))

  for (((name, mode, sql), number) <- queries.zipWithIndex) {
    val (provider, conf) = Variant.Providers(number % Variant.Providers.size)
    // rows that go where they may
    val changes = mode == "retract"

    test(s"$name, $provider") {
      val found = Seq(false, true).map { restarts =>
        val random = new Random(number.toLong)
        var (now, lines, mine) = (20, Seq.empty[Seq[String]], Seq.empty[String])
        val quick = ChangelogSession.Quick - "spark.sql.shuffle.partitions" ++ conf
        runningIn(mode, (if (changes) "op STRING, " else "") + columns, sql, quick) {
          (stream, query) =>
            for (batch <- 1 to 8) {
              now += random.nextInt(10)
              val rows = Seq.fill(1 + random.nextInt(8)) {
                val at = math.max(0, now - random.nextInt(16))
                s"${minute(at)} ${random.nextInt(3)} ${random.nextInt(40)}"
              }
              // below the watermark nothing can be taken back
              val gone = mine.filter(_ => changes && random.nextInt(4) == 0)
              mine = mine.diff(gone) ++ rows
              if (changes)
                stream.add(gone.map(row => s"delete $row") ++ rows.map(row => s"insert $row"): _*)
              else stream.add(rows: _*)
              if (restarts && batch % 2 == 0) query.restart()
              lines :+= query.next() :+ s"state ${stateRows(query)}"
            }
        }
        lines
      }
      assert(found(0) == found(1))
      assert(found(0).flatten.count(!_.startsWith("state")) >= 4)
    }
  }
}
