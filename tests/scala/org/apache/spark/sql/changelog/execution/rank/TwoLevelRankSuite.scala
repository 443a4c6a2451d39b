// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Ranks over all rows of what changes: each task finds the first rows of some, and one task those of all. */
class TwoLevelRankSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Interpreted)

  private lazy val oracle = new Oracle(spark)
  private val Enabled = "spark.sql.changelog.rank.twoLevel.enabled"
  private val ways = Map("spark.sql.shuffle.partitions" -> "4")
  private val Upper = "the second of two levels"

  private val t = Feed("t", "id INT, g STRING, v INT")

  private val forms = Seq(
    "rows without a key" -> t,
    "rows by key" -> t.copy(key = Seq("id")),
    "newest rows" -> t.copy(key = Seq("id"), upsert = true))

  private def ranked(function: String, order: String, bounds: String, columns: String): String =
    s"SELECT $columns FROM (SELECT *, $function() OVER (ORDER BY $order) AS r FROM t) WHERE r $bounds"

  /** Those of which batch Spark's answer is one: what is shown of ties is the same. */
  private val queries = Seq(
    "row_number, shown" -> ranked("row_number", "v DESC, id, g", "<= 3", "*"),
    "row_number" -> ranked("row_number", "v DESC NULLS LAST, id, g", "< 5", "id, g, v"),
    "row_number, ties" -> ranked("row_number", "v", "<= 4", "v, r"),
    "row_number, one row" -> ranked("row_number", "g DESC, id, v", "= 1", "*"),
    "row_number, not from the first" -> ranked("row_number", "v, g, id", "BETWEEN 3 AND 5", "*"),
    "rank, shown" -> ranked("rank", "v", "<= 3", "*"),
    "rank, ties" -> ranked("rank", "g", "BETWEEN 2 AND 6", "id, g, v"),
    "dense_rank, shown" -> ranked("dense_rank", "v DESC", "<= 2", "*"),
    "dense_rank, not from the first" -> ranked(
      "dense_rank",
      "g, v",
      "BETWEEN 2 AND 3",
      "id, g, v"),
    "order and limit" -> "SELECT * FROM t ORDER BY v, id DESC, g LIMIT 4",
    "order, limit and offset" -> "SELECT * FROM t ORDER BY v DESC, g, id LIMIT 3 OFFSET 2",
    "a limit alone" -> "SELECT count(*) AS n, every(v > -9 OR v IS NULL) AS e FROM (SELECT * FROM t LIMIT 4)",
    "below others" -> "SELECT g, sum(v) AS s FROM (SELECT * FROM t ORDER BY v, id, g LIMIT 6) GROUP BY g",
    "over groups" -> "SELECT g, sum(v) AS s FROM t GROUP BY g ORDER BY s DESC, g LIMIT 2")

  private def program(sql: String, feed: Feed, seed: Long): Program =
    SmallProgram(sql, Seq(feed), seed, numSteps = 6, most = 16, nullsOneIn = 6)

  private def explained(feed: Feed, sql: String, conf: Map[String, String]): String =
    ExplainedQuery(spark, sql, Seq(feed), ways ++ conf)

  private def hasTwoLevels(feed: Feed, sql: String, conf: Map[String, String] = Map.empty) = {
    val text = explained(feed, sql, conf)
    assert(text.contains(Upper) == text.contains("the first of two levels"), text)
    text.contains(Upper)
  }

  for (((kind, sql), index) <- queries.zipWithIndex) test(s"the first rows of all, $kind") {
    for (((form, feed), number) <- Share
        .of(forms.drop(index % 3) ++ forms.take(index % 3), oneIn = 3)
        .zipWithIndex)
      withClue(form) {
        assert(hasTwoLevels(feed, sql), explained(feed, sql, Map.empty))
        val provider = Variant.Providers((index + number) % 3)._2
        oracle.check(
          program(sql, feed, index * 10L + number),
          Variant(conf = ways ++ provider, restart = (index + number) % 2 == 0))
      }
  }

  test("ties are settled as in one level, by the other columns") {
    for ((sql, seed) <- Seq(
        ranked("row_number", "v", "<= 5", "*"),
        "SELECT * FROM t ORDER BY g LIMIT 4 OFFSET 1",
        "SELECT * FROM t LIMIT 5").zipWithIndex;
      (form, feed) <- forms.take(2)) withClue(s"$sql, $form") {
      val random = program(sql, feed, 300L + seed)
      def folded(conf: Map[String, String]): Seq[String] = {
        val changes = oracle.run(random, Variant(conf = ways ++ conf)).flatten
        FoldedChanges(changes.map { change =>
          val kind = if (change.isRetraction) "delete" else "insert"
          s"${change.row.mkString(" ")} $kind"
        })
      }
      assert(hasTwoLevels(feed, sql) && !hasTwoLevels(feed, sql, Map(Enabled -> "false")))
      assert(folded(Map.empty) == folded(Map(Enabled -> "false")))
    }
  }

  test("values that are equal and not of equal bytes, and columns that can't be compared") {
    val texts = Feed("t", "id INT, g STRING COLLATE UTF8_LCASE, z DOUBLE")
    val nested = Feed("t", "id INT, g STRING, m VARIANT")
    for ((feed, sql) <- Seq(
        texts -> "SELECT id, lower(g) AS g, z FROM t ORDER BY z, g, id LIMIT 5",
        texts -> ranked("rank", "g, z", "<= 4", "id, lower(g) AS g, z + 0.0D AS z, r"),
        nested.copy(key = Seq("id")) -> "SELECT * FROM t ORDER BY id DESC LIMIT 3"))
      withClue(sql) {
        assert(hasTwoLevels(feed, sql))
        oracle.check(program(sql, feed, sql.length.toLong), Variant(conf = ways, restart = true))
      }
  }

  test("to a reader by key") {
    val (byKey, sql) = (forms(1)._2, queries.toMap.apply("order and limit"))
    oracle.check(
      program(sql, byKey, 41),
      Variant("upsert", Seq("id"), conf = ways, restart = true))
    val numbered = queries.toMap.apply("row_number, shown")
    oracle.check(program(numbered, byKey, 42), Variant("upsert", Seq("r"), conf = ways))
  }

  test("one level where two don't pay, or can't be") {
    val limit = "SELECT * FROM t ORDER BY v, id LIMIT 3"
    val byKey = forms(1)._2
    assert(hasTwoLevels(byKey, limit))
    val shown = explained(byKey, limit, Map.empty)
    assert(shown.contains("ChangelogRank row_number [salt(id)] [v ASC NULLS FIRST"), shown)
    assert(!hasTwoLevels(byKey, limit, Map("spark.sql.shuffle.partitions" -> "1")))
    assert(!hasTwoLevels(byKey, limit, Map("spark.sql.changelog.state.ttl" -> "1h")))
    assert(!hasTwoLevels(byKey, limit.replace("LIMIT 3", "LIMIT 1001")))
    // rows only come: tasks send few of them
    assert(!hasTwoLevels(t.copy(insertOnly = true), limit))
    assert(
      !hasTwoLevels(
        byKey,
        ranked("row_number", "v", "<= 3", "*").replace("ORDER", "PARTITION BY g ORDER")))
    // one row
    assert(!hasTwoLevels(byKey, "SELECT count(*) AS n, min(v) AS v FROM t LIMIT 3"))
    assert(
      !hasTwoLevels(
        byKey,
        s"SELECT * FROM ($limit) ORDER BY id LIMIT 2",
        Map(Enabled -> "false")))
    val text = explained(byKey, s"SELECT * FROM ($limit) ORDER BY id LIMIT 2", Map.empty)
    assert(text.split(Upper, -1).length == 2, text)
  }

  private val byKey = forms(1)._2
  private val sql = "SELECT * FROM t ORDER BY v DESC, id LIMIT 2 OFFSET 1"

  private def life(): QueryLife = {
    val life = new QueryLife(spark, byKey)
    life.add(byKey, "+I 1 a 1", "+I 2 a 7", "+I 3 b 7", "+I 4 c 9", "+I 5 c 3")
    life
  }

  private def numRanks(life: QueryLife): Int =
    life.record.operators.count(_.shown.contains("Rank"))

  private def goesOn(life: QueryLife, conf: Map[String, String]): Unit = {
    life.add(byKey, "-D 4 c 9", "-U 2 a 7", "+U 2 a 0", "+I 6 d 8")
    life.run(life.changes(sql, conf))
    assert(life.result == life.expected(sql))
    life.add(byKey, "-D 3 b 7", "-D 6 d 8")
    life.run(life.changes(sql, conf))
    assert(life.result == life.expected(sql))
  }

  test("a query goes on in two levels, whatever the settings of later sessions") {
    val query = life()
    query.run(query.changes(sql, ways))
    assert(numRanks(query) == 2)
    goesOn(query, Map(Enabled -> "false", "spark.sql.changelog.skew.ways" -> "2"))
    assert(numRanks(query) == 2)
  }
}
