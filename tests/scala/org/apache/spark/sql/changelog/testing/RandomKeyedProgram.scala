// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Random

/**
 * A program whose rows have several keys, or one, or none, drawn by a seed: Top-N with its places and
 * without, groups, joins, set operations and window functions over each other. The same for the same
 * seed.
 *
 * All tables have the columns `k`, `g`, `v` and `w`, and so has every query that stands for one.
 */
object RandomKeyedProgram {
  private val names = Seq("k", "g", "v", "w")

  def apply(seed: Long): Program = {
    val random = new Random(seed)
    val values = new RandomValues(random, wraps = false, small = true)
    val feeds = (1 to 3).map(number => feed(random, s"t$number"))
    val sql = new Queries(random, feeds.map(_.name)).top()
    val read = feeds.filter(feed => s"\\b${feed.name}\\b".r.findFirstIn(sql).isDefined)
    val changelogs = read.map(feed => feed -> new RandomChangelog(random, feed, values))
    val steps = Seq.fill(3 + random.nextInt(3)) {
      Step(changelogs.map { case (feed, changelog) =>
        val size = Seq(0, 1, 3, 6, 12)(random.nextInt(5))
        val changes = Seq.fill(size)(changelog.next()).flatten
        feed.name -> (if (random.nextBoolean()) moved(changes) else changes)
      }.toMap)
    }
    Program(read, sql, steps)
  }

  private def feed(random: Random, name: String): Feed = {
    val feed = Feed(name, "k INT, g STRING, v INT, w INT")
    random.nextInt(8) match {
      case 0 => feed.copy(insertOnly = true)
      case 1 | 2 => feed.copy(key = Seq("k"), upsert = true)
      case 3 => feed
      case _ => feed.copy(key = Seq("k"))
    }
  }

  /** The same, with updates that give a row another key. */
  private def moved(changes: Seq[Change]): Seq[Change] = changes match {
    case Change("-D", gone) +: Change("+I", come) +: rest =>
      Change("-U", gone) +: Change("+U", come) +: moved(rest)
    case first +: rest => first +: moved(rest)
    case nothing => nothing
  }

  private final class Queries(random: Random, tables: Seq[String]) {
    private def pick[T](choices: T*): T = choices(random.nextInt(choices.size))

    /** Some of the columns, some of them twice, in any order. */
    def top(): String = {
      val shown = random.shuffle(names).take(pick(2, 3, 4, 4))
      val again =
        if (random.nextInt(4) == 0) shown.take(1).map(name => s"$name AS ${name}2") else Nil
      s"SELECT ${(shown ++ again).mkString(", ")} FROM ${relation(pick(1, 2, 2, 3))} q"
    }

    private def relation(depth: Int): String =
      if (depth == 0) pick(tables: _*)
      else {
        def input = relation(depth - 1)
        random.nextInt(13) match {
          case 0 | 1 | 2 | 3 => ranked(input)
          case 4 | 5 => grouped(input)
          case 6 | 7 | 8 => joined(input, relation(pick(0, depth - 1)))
          case 9 => s"(SELECT k, g, v, w FROM $input WHERE ${pick("v > 1", "k <> 2", "g > 'a'")})"
          case 10 => combined(input, relation(pick(0, depth - 1)))
          case 11 => windowed(input)
          case _ => limited(input)
        }
      }

    private def ranked(input: String): String = {
      val partition = pick("g", "g", "k", "g, w", "w")
      val order = pick("v DESC, k, g, w", "v, w, k, g", "k, v, g, w")
      val function = pick("row_number", "row_number", "row_number", "rank", "dense_rank")
      val bound = pick("= 1", "<= 2", "<= 3", "= 2", "BETWEEN 2 AND 3")
      val shown = pick("k, g, v, w", "k, g, v, r AS w", "k, g, v, r AS w", "r AS k, g, v, w")
      s"(SELECT $shown FROM (SELECT *, $function() OVER (PARTITION BY $partition ORDER BY $order) AS r" +
        s" FROM $input) WHERE r $bound)"
    }

    private def grouped(input: String): String = pick(
      s"(SELECT max(k) AS k, g, sum(v) AS v, count(*) AS w FROM $input GROUP BY g)",
      s"(SELECT k, min(g) AS g, max(v) AS v, w FROM $input GROUP BY k, w)",
      s"(SELECT k, max(g) AS g, count(DISTINCT v) AS v, sum(w) AS w FROM $input GROUP BY k)",
      s"(SELECT DISTINCT k, g, v, 1 AS w FROM $input)",
      s"(SELECT count(*) AS k, max(g) AS g, sum(v) AS v, min(w) AS w FROM $input)")

    private def joined(left: String, right: String): String = {
      val condition =
        pick("x.k = y.k", "x.k = y.k", "x.g = y.g", "x.k = y.w", "x.k = y.k AND x.v < y.w")
      pick(
        "JOIN",
        "JOIN",
        "LEFT JOIN",
        "RIGHT JOIN",
        "FULL JOIN",
        "SEMI JOIN",
        "ANTI JOIN") match {
        case join @ ("SEMI JOIN" | "ANTI JOIN") =>
          s"(SELECT x.k, x.g, x.v, x.w FROM $left x LEFT $join $right y ON $condition)"
        case join =>
          val columns =
            pick("x.k, x.g, y.v, y.k AS w", "x.k, y.g, x.v, y.w", "x.k, x.g, x.v, y.k AS w")
          s"(SELECT $columns FROM $left x $join $right y ON $condition)"
      }
    }

    private def combined(left: String, right: String): String = {
      val operator =
        pick("UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
      s"(SELECT k, g, v, w FROM $left $operator SELECT k, g, v, w FROM $right)"
    }

    private def windowed(input: String): String = {
      val partition = pick("g", "k", "w")
      val function = pick("sum(v) OVER", "count(*) OVER", "max(k) OVER")
      s"(SELECT k, g, v, $function (PARTITION BY $partition) AS w FROM $input)"
    }

    private def limited(input: String): String =
      s"(SELECT k, g, v, w FROM $input ORDER BY ${pick("v DESC, k, g, w", "w, g, k, v")} LIMIT ${pick(1, 2, 4)})"
  }
}
