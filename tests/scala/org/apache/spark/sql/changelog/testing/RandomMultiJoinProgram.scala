// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Random

/**
 * A program of inner joins of several tables on one key, drawn by a seed, with a way to run it. The
 * same for the same seed.
 */
object RandomMultiJoinProgram {

  def apply(seed: Long): (Program, Variant) = {
    val random = new Random(seed)
    def pick[T](choices: T*): T = choices(random.nextInt(choices.size))
    val values = new RandomValues(random, wraps = false)
    val joined = pick("INT", "STRING", "DOUBLE")
    val feeds = (1 to 3 + random.nextInt(2)).map { number =>
      val feed = Feed(s"t$number", s"k INT, j $joined, w INT")
      pick(
        feed,
        feed.copy(insertOnly = true),
        feed.copy(key = Seq("k")),
        feed.copy(key = Seq("k", "w")),
        feed.copy(key = Seq("k"), upsert = true))
    }
    val keys = pick(Seq("k"), Seq("k"), Seq("k"), Seq("j"), Seq("k", "j"))
    val equal = pick("=", "=", "=", "<=>")
    val names = feeds.map(_.name)
    val joins = names.zipWithIndex.drop(1).map { case (name, index) =>
      val other = names(random.nextInt(index))
      val further = random.nextInt(6) match {
        case 0 => Seq(s"$name.w < $other.w")
        case 1 => Seq(s"$name.w <> ${names.head}.w")
        case _ => Nil
      }
      val conditions = keys.map(key => s"$name.$key $equal $other.$key") ++ further
      s"JOIN ${if (random.nextInt(8) == 0) grouped(name) else name} ON ${conditions.mkString(" AND ")}"
    }
    val columns = names.zipWithIndex.flatMap { case (name, index) =>
      Seq("k", "j", "w").map(column => s"$name.$column AS $column$index")
    }
    val from = s"FROM ${names.head} ${joins.mkString(" ")}"
    val isGrouped = random.nextInt(4) == 0
    val query =
      if (isGrouped)
        s"SELECT $names.k, count(*) $from GROUP BY".replace(s"$names", names.head) +
          s" ${names.head}.k"
      else s"SELECT ${columns.mkString(", ")} $from"
    val changelogs = feeds.map(feed => feed -> new RandomChangelog(random, feed, values))
    val steps = Seq.fill(3 + random.nextInt(2)) {
      Step(changelogs.map { case (feed, changelog) =>
        feed.name -> Seq.fill(pick(0, 1, 2, 4, 8))(changelog.next()).flatten
      }.toMap)
    }
    (Program(feeds, query, steps), variant(random, feeds, isGrouped))
  }

  /** A table as a query with the same columns, that has another key. */
  private def grouped(name: String): String =
    s"(SELECT k, max(j) AS j, count(*) AS w FROM $name GROUP BY k) AS $name"

  private def variant(random: Random, feeds: Seq[Feed], isGrouped: Boolean): Variant = {
    // of tables keyed by k alone each has at most one row of a key
    val keys = feeds.zipWithIndex.map { case (feed, index) => feed.key.map(_ + index) }
    val upsert = !isGrouped && keys.forall(_.nonEmpty) && random.nextInt(3) > 0
    val (_, provider) = Variant.Providers(random.nextInt(Variant.Providers.size))
    Variant(
      mode = if (upsert) "upsert" else "retract",
      key = if (upsert) keys.flatten else Nil,
      restart = random.nextInt(3) == 0,
      conf = provider ++
        (if (random.nextBoolean()) Map("spark.sql.changelog.join.rowsAtOnce" -> "1")
         else Map.empty))
  }
}
