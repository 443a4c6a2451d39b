// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Joins without an equality, of which the rows of one side are divided among tasks. */
class SpreadJoinSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Interpreted)

  private lazy val oracle = new Oracle(spark)
  private val Enabled = "spark.sql.changelog.join.spread.enabled"
  private val ways = Map("spark.sql.shuffle.partitions" -> "4")

  private val l = Feed("l", "id INT, a INT, b STRING")
  private val r = Feed("r", "c INT, d STRING")

  private val forms = Seq(
    "without keys" -> (l, r),
    "by keys" -> (l.copy(key = Seq("id")), r.copy(key = Seq("c"))),
    "of newest rows" ->
      (l.copy(key = Seq("id"), upsert = true), r.copy(key = Seq("c"), upsert = true)),
    "rows only come" -> (l.copy(insertOnly = true), r.copy(insertOnly = true)))

  private val left = Some("left rows are spread over 4 salts, with a copy of right rows for each")
  private val right = Some(
    "right rows are spread over 4 salts, with a copy of left rows for each")

  /** What they are called, what EXPLAIN says of them, and what they are. */
  private val queries = Seq(
    ("inner", left, "SELECT id, a, b, d FROM l JOIN r ON a < c AND b <> d"),
    ("cross", left, "SELECT id, b, c, d FROM l CROSS JOIN r"),
    ("left", left, "SELECT id, a, c, d FROM l LEFT JOIN r ON a BETWEEN c - 1 AND c + 1"),
    ("right", right, "SELECT id, a, c, d FROM l RIGHT JOIN r ON a > c"),
    ("semi", left, "SELECT * FROM l LEFT SEMI JOIN r ON a > c OR b = d"),
    ("anti", left, "SELECT * FROM l LEFT ANTI JOIN r ON a + 1 > c"),
    ("not exists, no condition", left, "SELECT * FROM l WHERE NOT EXISTS (SELECT 1 FROM r)"),
    ("existence", left, "SELECT id, EXISTS (SELECT 1 FROM r WHERE c > a) OR a = 1 AS e FROM l"),
    ("a scalar subquery", left, "SELECT id, a, b FROM l WHERE a > (SELECT avg(c) FROM r)"),
    (
      "one row on the left, which is copied",
      right,
      "SELECT m, c, d FROM (SELECT max(a) AS m FROM l) JOIN r ON m > c"))

  private def program(sql: String, feeds: Seq[Feed], seed: Long): Program =
    SmallProgram(sql, feeds, seed, numSteps = 5, most = 12, nullsOneIn = 5)

  private def explained(sql: String, feeds: Seq[Feed], conf: Map[String, String]): String =
    ExplainedQuery(spark, sql, feeds, ways ++ conf)

  private def check(
      sql: String,
      feeds: Seq[Feed],
      said: Option[String],
      variant: Variant = Variant()): Unit = {
    val text = explained(sql, feeds, variant.conf)
    said match {
      case Some(said) => assert(text.contains(said), text)
      case None => assert(!text.contains("are spread over"), text)
    }
    oracle.check(
      program(sql, feeds, sql.length.toLong),
      variant.copy(conf = ways ++ variant.conf))
    ()
  }

  for (((kind, said, sql), index) <- queries.zipWithIndex) test(s"all tasks join, $kind") {
    val drawn = forms.drop(index % 4) ++ forms.take(index % 4)
    for (((form, (one, other)), number) <- Share.of(drawn, oneIn = 4).zipWithIndex)
      withClue(form) {
        val provider = Variant.Providers((index + number) % 3)._2
        check(sql, Seq(one, other), said, Variant(conf = provider, restart = number == index % 2))
      }
  }

  test("a side that many tasks have to know as a whole stays in one") {
    val full = "SELECT id, a, c, d FROM l FULL JOIN r ON a < c"
    check(full, Seq(l, r), None)
    assert(explained(full, Seq(l, r), Map.empty).contains("all rows meet in one partition"))
    // few rows with many copies of the others
    val few = "SELECT m, c FROM (SELECT max(a) AS m FROM l) LEFT JOIN r ON m > c"
    check(few, Seq(l, r), None)
    check(
      "SELECT * FROM (SELECT max(a) AS m FROM l), (SELECT max(c) AS n FROM r)",
      Seq(l, r),
      None)
  }

  test("by settings") {
    val (_, _, inner) = queries.head
    check(inner, Seq(l, r), None, Variant(conf = Map(Enabled -> "false")))
    check(inner, Seq(l, r), None, Variant(conf = Map("spark.sql.shuffle.partitions" -> "1")))
    val some = left.map(_.replace("4 salts", "2 salts"))
    check(inner, Seq(l, r), some, Variant(conf = Map("spark.sql.changelog.skew.ways" -> "2")))
    check(
      "SELECT id, a, b, c, d FROM l JOIN r ON a < c",
      Seq(l.copy(key = Seq("id")), r.copy(key = Seq("c"))),
      left,
      Variant("upsert", Seq("id", "c"), restart = true))
  }

  private val sql = "SELECT id, c FROM l LEFT JOIN r ON a < c"

  private def life(): QueryLife = {
    val life = new QueryLife(spark, l, r)
    life.add(l, "+I 1 1 a", "+I 2 2 a", "+I 3 7 b", "+I 4 NULL c")
    life.add(r, "+I 1 x", "+I 5 y")
    life
  }

  private def goesOn(life: QueryLife, conf: Map[String, String]): Unit = {
    life.add(l, "-D 2 2 a", "+I 5 0 d")
    life.add(r, "-D 5 y", "+I 9 z")
    life.run(life.changes(sql, conf))
    assert(life.result == life.expected(sql))
  }

  test("a query goes on as it was begun") {
    val spread = life()
    spread.run(spread.changes(sql, ways))
    goesOn(spread, Map(Enabled -> "false", "spark.sql.changelog.skew.ways" -> "2"))
    assert(spread.record.settings(Enabled) == "true")
  }

  test("rows are kept in all partitions") {
    val query = life()
    query.run(query.changes(sql, ways))
    val places = spark.read
      .format("statestore")
      .load(query.checkpoint.toString)
      .where("key.side = 1")
      .select("partition_id")
      .distinct()
      .count()
    assert(places == 4)
  }
}
