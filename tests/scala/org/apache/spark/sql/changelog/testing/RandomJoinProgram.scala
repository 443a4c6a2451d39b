// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Random

/**
 * A program of joins drawn by a seed, with a way to run it. The same for the same seed.
 *
 * All tables have the columns `k`, `j`, `v` and `w`, and so has every query that stands for one:
 * joins of all types and key forms, of tables, of themselves, of joins and of aggregates. In some a
 * hint spreads the rows of a side.
 */
object RandomJoinProgram {

  /**
   * @param key
   *   columns that identify a row; none if there are none
   */
  private case class Relation(sql: String, key: Option[Seq[String]])

  def apply(seed: Long): (Program, Variant) = {
    val random = new Random(seed)
    val values = new RandomValues(random, wraps = false)
    val feeds = this.feeds(random)
    val query = new Queries(random, new Random(~seed), feeds).apply()
    val changelogs = feeds.map(feed => feed -> new RandomChangelog(random, feed, values))
    val steps = Seq.fill(3 + random.nextInt(3)) {
      Step(changelogs.map { case (feed, changelog) =>
        val size = Seq(0, 0, 1, 3, 6, 12)(random.nextInt(6))
        feed.name -> Seq.fill(size)(changelog.next()).flatten
      }.toMap)
    }
    (Program(feeds, query.sql, steps), variant(random, query.key))
  }

  private def feeds(random: Random): Seq[Feed] = {
    val types = Seq("INT", "STRING", "DOUBLE", "DATE", "DECIMAL(5,2)")
    val joined = types(random.nextInt(types.size))
    val other = types(random.nextInt(types.size))
    (1 to 2 + random.nextInt(2)).map { number =>
      val feed = Feed(s"t$number", s"k INT, j $joined, v $other, w INT")
      random.nextInt(6) match {
        case 0 => feed.copy(insertOnly = true)
        case 1 | 2 => feed.copy(key = Seq("k"))
        case 3 => feed.copy(key = Seq("k"), upsert = true)
        case _ => feed
      }
    }
  }

  private def variant(random: Random, key: Option[Seq[String]]): Variant = {
    val upsert = key.isDefined && random.nextInt(2) == 0
    val rocksDB = random.nextInt(3) == 0
    val atOnce: Map[String, String] =
      if (random.nextInt(3) > 0) Map.empty
      else Map("spark.sql.changelog.join.rowsAtOnce" -> (1 + random.nextInt(2)).toString)
    Variant(
      mode = if (upsert) "upsert" else "retract",
      key = if (upsert) key.get else Nil,
      restart = rocksDB || random.nextInt(8) == 0,
      conf = atOnce ++
        (if (rocksDB) Variant.RocksDB
         else if (random.nextBoolean()) Variant.Paged
         else Map.empty))
  }

  private final class Queries(random: Random, hints: Random, feeds: Seq[Feed]) {
    private def pick[T](choices: T*): T = choices(random.nextInt(choices.size))

    private def table(): Relation = {
      val feed = pick(feeds: _*)
      Relation(feed.name, if (feed.key.isEmpty) None else Some(feed.key))
    }

    private def aggregate(input: Relation): Relation = {
      val group = pick("k", "j")
      val other = if (group == "k") "max(j) AS j" else "min(k) AS k"
      val sql =
        s"(SELECT $group, $other, max(v) AS v, CAST(count(*) AS INT) AS w FROM ${input.sql} GROUP BY $group)"
      Relation(sql, Some(Seq(group)))
    }

    private def side(): Relation = random.nextInt(5) match {
      case 0 => aggregate(table())
      case 1 =>
        val input = table()
        input.copy(sql =
          s"(SELECT * FROM ${input.sql} WHERE ${pick("w > 0", "k < 3", "j IS NOT NULL")})")
      case _ => table()
    }

    def apply(): Relation = {
      val depth = pick(1, 1, 1, 2, 2, 3)
      val joined = (1 to depth).foldLeft(side()) { (left, _) =>
        val next = join(left, side())
        if (random.nextInt(6) == 0) aggregate(next) else next
      }
      joined.copy(sql = s"SELECT * FROM ${joined.sql}")
    }

    private def condition(): String = {
      val equal = pick(
        Seq("x.k = y.k"),
        Seq("x.k = y.k"),
        Seq("x.j = y.j"),
        Seq("x.j = y.j"),
        Seq("x.j <=> y.j"),
        Seq("x.k = y.k", "x.j = y.j"),
        Seq("x.k <=> y.w", "x.j = y.j"),
        Seq("x.k = y.w"),
        Seq("x.w % 3 = y.k"),
        Seq("x.w < y.w"))
      val rest = random.nextInt(5) match {
        case 0 => Seq("x.w < y.w")
        case 1 => Seq(pick("x.v <> y.v", "x.v < y.v OR y.w IS NULL", "x.w > 0", "y.k < 3"))
        case _ => Nil
      }
      (equal ++ rest).map(c => if (c.contains(" OR ")) s"($c)" else c).mkString(" AND ")
    }

    private def join(x: Relation, y: Relation): Relation = random.nextInt(12) match {
      case 0 | 1 => beside("JOIN", x, y)
      case 2 | 3 => beside("LEFT JOIN", x, y)
      case 4 => beside("RIGHT JOIN", x, y)
      case 5 | 6 => beside("FULL JOIN", x, y)
      case 7 => ofLeft(x, s"LEFT SEMI JOIN ${y.sql} y ON", condition())
      case 8 => ofLeft(x, s"LEFT ANTI JOIN ${y.sql} y ON", condition())
      case 9 =>
        val not = pick("", "NOT ")
        ofLeft(
          x,
          s"WHERE x.w = 1 OR ${not}EXISTS (SELECT * FROM ${y.sql} y WHERE ${condition()})")
      case 10 =>
        val column = pick("k", "j")
        ofLeft(
          x,
          s"WHERE x.$column NOT IN (SELECT y.$column FROM ${y.sql} y WHERE y.w IS NOT NULL)")
      case _ =>
        val value = s"(SELECT max(w) FROM ${y.sql} y WHERE ${pick("x.k = y.k", "x.j = y.j")})"
        Relation(
          s"(SELECT x.k, x.j, x.v, $value AS w FROM ${x.sql} x)",
          x.key.filter(_.forall(Set("k", "j", "v"))))
    }

    private def ofLeft(x: Relation, rest: String, on: String = ""): Relation =
      x.copy(sql = s"(SELECT ${hint(Seq("x"), on)}x.* FROM ${x.sql} x $rest $on)")

    /** In one join of three a hint that spreads rows of one of `sides`. */
    private def hint(sides: Seq[String], on: String): String =
      "x\\.(\\w+) (?:=|<=>) y\\.(\\w+)(?= AND|$)".r.findFirstMatchIn(on) match {
        case Some(pair) if sides.nonEmpty && hints.nextInt(3) == 0 =>
          val side = sides(hints.nextInt(sides.size))
          val column = pair.group(if (side == "x") 1 else 2)
          val some = Seq("", ", 0", ", (1, 2)", ", (NULL, 0, 5)")(hints.nextInt(4))
          // those of other columns are of any type
          s"/*+ SKEW('$side', '$column'${if (column == "j") "" else some}) */ "
        case _ => ""
      }

    private def spreadSides(kind: String): Seq[String] = kind match {
      case "JOIN" => Seq("x", "y")
      case "LEFT JOIN" => Seq("x")
      case "RIGHT JOIN" => Seq("y")
      case _ => Nil
    }

    private def beside(kind: String, x: Relation, y: Relation): Relation = {
      val names = Seq("k", "j", "v", "w")
      // FULL: a key may be NULL on one side, unless it is declared
      val key = for (xs <- x.key; ys <- y.key if kind != "FULL JOIN") yield (xs, ys)
      key match {
        case Some((xs, ys)) if xs.size == 1 && xs == ys =>
          val columns = names.map(name => s"x.$name") ++ names.map(name => s"y.$name AS y$name")
          val on = condition()
          val hinted = hint(spreadSides(kind), on)
          val wide =
            s"SELECT $hinted${columns.mkString(", ")} FROM ${x.sql} x $kind ${y.sql} y ON $on"
          Relation(s"($wide)", Some(xs ++ ys.map("y" + _)))
        case _ =>
          val columns = names.map(name => s"${pick("x", "y")}.$name")
          val on = condition()
          val hinted = hint(spreadSides(kind), on)
          Relation(
            s"(SELECT $hinted${columns.mkString(", ")} FROM ${x.sql} x $kind ${y.sql} y ON $on)",
            None)
      }
    }
  }
}
