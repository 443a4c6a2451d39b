// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import scala.util.Random

import org.apache.spark.sql.changelog.testing._

/** Random joins with versions of a time, against the same queries as batches. */
class ChangelogTemporalJoinPropertySuite extends PropertySuite(numSeeds = 3) {

  override protected def program(seed: Long): (Program, Variant) = {
    val random = new Random(seed)
    def pick[T](choices: T*): T = choices(random.nextInt(choices.size))
    val values = new RandomValues(random, wraps = false)
    val joined = pick("INT", "STRING", "DOUBLE")
    val time = pick("INT", "STRING", "DOUBLE", "DATE", "TIMESTAMP", "DECIMAL(5,2)")
    val feeds = Seq("l", "r").map { name =>
      val feed = Feed(name, s"id INT, k $joined, t $time, v INT")
      random.nextInt(5) match {
        case 0 => feed.copy(insertOnly = true)
        case 1 => feed.copy(key = Seq("id"))
        case 2 => feed.copy(key = Seq("id"), upsert = true)
        case _ => feed
      }
    }
    val changelogs = feeds.map(feed => feed -> new RandomChangelog(random, feed, values))
    val steps = Seq.fill(3 + random.nextInt(3)) {
      Step(changelogs.map { case (feed, changelog) =>
        val size = pick(0, 1, 3, 8, 20)
        feed.name -> Seq.fill(size)(changelog.next()).flatten
      }.toMap)
    }
    val isForward = random.nextInt(4) == 0
    val (operator, direction) =
      if (isForward) (pick(">=", ">"), "ASC") else (pick("<=", "<"), "DESC")
    val limit =
      if (time != "INT") "true" else if (isForward) "y.t < x.t + 3" else "y.t > x.t - 3"
    val conditions = Seq(
      pick("x.k = y.k", "x.k = y.k", "x.k <=> y.k", "x.k = y.k AND x.v = y.v", "true"),
      s"y.t $operator x.t",
      pick("true", "true", "y.v > 0", "x.v > 0", limit),
      // no single version is known to be the one
      if (random.nextInt(6) == 0) "y.v <> x.v" else "true").mkString(" AND ")
    // ties are settled, as batch Spark may take any
    val order = s"y.t $direction, y.v ${pick("", "DESC")}, y.k, y.id"
    val version =
      s"LATERAL (SELECT *, y.v + x.v / 2 AS w, 1 AS one FROM r y WHERE $conditions ORDER BY $order LIMIT 1) z"
    val sql = random.nextInt(4) match {
      case 0 | 1 => s"SELECT x.*, z.v AS zv, z.w, z.one FROM l x LEFT JOIN $version"
      case 2 => s"SELECT x.*, z.t AS zt, z.one FROM l x JOIN $version ON z.v < 3"
      case _ =>
        s"SELECT x.k, z.v, count(*) AS n FROM l x LEFT JOIN $version ON z.v < 3 GROUP BY 1, 2"
    }
    val rocksDB = random.nextInt(3) == 0
    val conf = Map("spark.sql.ansi.enabled" -> "false") ++
      (if (rocksDB) Variant.RocksDB else Map.empty)
    val variant = Variant(restart = rocksDB || random.nextInt(8) == 0, conf = conf)
    (Program(feeds, sql, steps), variant)
  }
}
