// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.plans.Skew
import org.apache.spark.sql.changelog.testing._

/** Joins of which a hint spreads the rows of some keys. */
class SkewedJoinSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Interpreted)

  private lazy val oracle = new Oracle(spark)
  private val ways = Map("spark.sql.changelog.skew.ways" -> "3")

  /** Tables without a key, of which the rows come and go. */
  private val l = Feed("l", "id INT, a INT, b STRING")
  private val r = Feed("r", "c INT, d STRING")

  private val forms = Seq(
    "without keys" -> (l, r),
    "the other side by the join key" -> (l.copy(key = Seq("id")), r.copy(key = Seq("c"))),
    "both of newest rows" ->
      (l.copy(key = Seq("id"), upsert = true), r.copy(key = Seq("c"), upsert = true)),
    "the other side by another key" ->
      (l.copy(key = Seq("id")), Feed("r", "nr INT, c INT, d STRING", key = Seq("nr"))),
    "rows only come" -> (l.copy(insertOnly = true), r.copy(insertOnly = true)))

  private val hints = Seq("'a', (0, 1, NULL)", "'a', 1", "'a'")

  private val queries = Seq(
    "INNER" -> "SELECT HINT l.id, a, b, d FROM l JOIN r ON a = c",
    "LEFT" -> "SELECT HINT l.id, a, b, d FROM l LEFT JOIN r ON a = c AND b <> d",
    "LEFT, NULLs equal" -> "SELECT HINT l.id, a, b, d FROM l LEFT JOIN r ON a <=> c",
    "RIGHT" -> "SELECT HINT l.id, a, b, d FROM r RIGHT JOIN l ON a = c",
    "LEFT SEMI" -> "SELECT HINT l.id, a, b FROM l LEFT SEMI JOIN r ON a = c",
    "LEFT ANTI" -> "SELECT HINT l.id, a, b FROM l LEFT ANTI JOIN r ON a = c AND b < d",
    "EXISTS" -> "SELECT HINT id, EXISTS (SELECT 1 FROM r WHERE a = c) AS e FROM l",
    "a scalar subquery" -> "SELECT HINT id, (SELECT max(d) FROM r WHERE a = c) AS m FROM l")

  private def program(sql: String, feeds: Seq[Feed], seed: Long): Program =
    SmallProgram(sql, feeds, seed, numSteps = 5, most = 14, nullsOneIn = 5)

  for (((kind, sql), index) <- queries.zipWithIndex) test(s"rows of a side are spread, $kind") {
    // each kind with others of the forms
    val drawn = forms.zipWithIndex.drop(index % 3) ++ forms.zipWithIndex.take(index % 3)
    for (((form, (left, right)), number) <- Share.of(drawn, oneIn = 3)) withClue(form) {
      val hint = s"/*+ SKEW('l', ${hints((index + number) % hints.size)}) */"
      val hinted = program(sql.replace("HINT", hint), Seq(left, right), index * 10L + number)
      val provider = Variant.Providers((index + number) % 3)._2
      oracle.check(hinted, Variant(conf = ways ++ provider, restart = number % 2 == 0))
    }
  }

  test("the same in every way to keep state, and to be read by key") {
    val (left, right) = forms(3)._2
    val sql = "SELECT /*+ SKEW('l', 'a', (1, 2)) */ l.id, nr, a, b, d FROM l JOIN r ON a = c"
    val hinted = program(sql, Seq(left, right), 77)
    Share.check(
      oracle,
      hinted,
      Variant.all.map(variant => variant.copy(conf = variant.conf ++ ways)) :+
        Variant("upsert", Seq("id", "nr"), conf = ways))
    val onlyLeft = "SELECT /*+ SKEW('l', 'a') */ l.id, a, d FROM l LEFT JOIN r ON a = c"
    val (keyed, looked) = forms(2)._2
    oracle.check(
      program(onlyLeft, Seq(keyed, looked), 78),
      Variant("upsert", Seq("id"), conf = ways, restart = true))
  }

  test("a side whose key holds the join key sends no old rows") {
    val left = Feed("l", "id INT, a INT, b STRING", key = Seq("a"), upsert = true)
    val right = Feed("r", "c INT, d STRING", key = Seq("c"), upsert = true)
    val sql = "SELECT /*+ SKEW('l', 'a') */ a, b, d FROM l JOIN r ON a = c"
    oracle.check(program(sql, Seq(left, right), 5), Variant("upsert", Seq("a"), conf = ways))
  }

  test("several columns, types that differ, texts of a collation, and joins on several tables") {
    val left = Feed("l", "id INT, a INT, b STRING COLLATE UTF8_LCASE, x DATE, z DOUBLE")
    val right = Feed("r", "c BIGINT, d STRING COLLATE UTF8_LCASE, y DATE, v INT, z DOUBLE")
    val third = Feed("s", "c INT, w INT", key = Seq("c"))
    val columns = Seq(
      "SKEW('l', ('a', 'b'), ((1, 'A'), (2, 'b')))" -> "a = r.c AND b = d",
      "SKEW(l, b, ('a', 'B'))" -> "b = d",
      "SKEW('l', 'x', ('2024-01-01', DATE'2024-02-29'))" -> "x = y",
      "SKEW('l', 'z', (0, 'NaN', 1.5))" -> "l.z = r.z",
      "SKEW('l', 'z', (NULL, 0, 1.5))" -> "l.z <=> r.z",
      // Spark splits both comparisons if one is of floating point numbers
      "SKEW('l', 'a')" -> "a <=> r.c AND l.z = r.z",
      "SKEW('l', 'a', (1, 2 + 0))" -> "a = r.c AND x <=> y")
    for ((hint, on) <- Share.of(columns, oneIn = 2)) {
      val sql =
        s"SELECT /*+ $hint */ l.id, v, w FROM l JOIN r ON $on LEFT JOIN s ON l.a = s.c"
      oracle.check(program(sql, Seq(left, right, third), hint.length), Variant(conf = ways))
    }
    // each join by the column, and one that is not
    val sql = "SELECT /*+ SKEW('l', 'a', 1) */ l.id, v, t.w FROM l JOIN s ON l.id = s.c " +
      "JOIN r ON l.a = r.c JOIN s AS t ON l.a = t.c"
    oracle.check(program(sql, Seq(left, right, third), 3), Variant(conf = ways))
  }

  test("below filters, projections, in derived tables and in subqueries") {
    val queries = Seq(
      "SELECT /*+ SKEW('x', 'k', 1) */ x.id, d FROM (SELECT id, a AS k FROM l WHERE id > 0) x " +
        "JOIN r ON k = c WHERE d <> 'q'",
      "SELECT k, count(*) AS n FROM (SELECT /*+ SKEW('l', 'a', (1, 2)) */ a AS k, d FROM l " +
        "JOIN r ON a = c) GROUP BY k",
      "SELECT * FROM l WHERE id IN (SELECT /*+ SKEW('x', 'a') */ x.id FROM l x JOIN r ON x.a = c)",
      "SELECT /*+ SKEW('l', 'a', 1) */ id, d FROM l JOIN r ON a = c WHERE id IN (SELECT c FROM r)")
    for (sql <- Share.of(queries, oneIn = 2))
      withClue(sql)(oracle.check(program(sql, Seq(l, r), sql.length), Variant(conf = ways)))
  }

  private lazy val bids = new RawStream(spark, "bids", "op STRING, id INT, k INT, v INT")
  private lazy val items = new RawStream(spark, "items", "op STRING, k INT, name STRING")

  private def tables(): Unit = {
    bids.reset()
    items.reset()
    for ((raw, table) <- Seq("bids" -> "b", "items" -> "i")) {
      spark
        .sql(s"SELECT * FROM from_changelog(TABLE($raw), change_type => 'op')")
        .createOrReplaceTempView(table)
    }
  }

  private def changes(sql: String): DataFrame =
    spark.sql(s"SELECT * FROM to_changelog(TABLE($sql))")

  /** How many partitions hold state of a query after a few bids for one item. */
  private def partitionsOf(changes: => DataFrame): Long = {
    tables()
    val checkpoint = QuickFileSystem.temporaryDirectory()
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    val query = new RunningChanges(changes, checkpoint)
    try {
      items.add("insert 7 x")
      bids.add((1 to 40).map(number => s"insert $number 7 $number"): _*)
      assert(query.next().size == 40)
      spark.read
        .format("statestore")
        .load(checkpoint.getPath)
        .where("key.side = 0")
        .select("partition_id")
        .distinct()
        .count()
    } finally {
      query.stop()
      spark.conf.set("spark.sql.shuffle.partitions", "2")
    }
  }

  test("the rows of a key are kept in all partitions, by SQL and by data frames") {
    val joined = "SELECT HINT id, name FROM b JOIN i ON b.k = i.k"
    assert(partitionsOf(changes(joined.replace("HINT", ""))) == 1)
    assert(partitionsOf(changes(joined.replace("HINT", "/*+ SKEW('b', 'k', 7) */"))) == 4)
    assert(partitionsOf(changes(joined.replace("HINT", "/*+ SKEW('b', 'k', 8) */"))) == 1)
    for (parameters <- Seq(Seq[Any]("k", 7), Seq[Any]("k", Array(6, 7)), Seq[Any](Array("k")))) {
      assert(partitionsOf {
        val skewed = spark.table("b").hint("skew", parameters: _*)
        skewed.join(spark.table("i"), "k").select("id", "name").createOrReplaceTempView("joined")
        changes("SELECT * FROM joined")
      } == 4)
    }
  }

  private def explained(sql: String): String =
    spark.sql(s"EXPLAIN CHANGELOG $sql").head().getString(0)

  test("EXPLAIN shows how rows are spread") {
    tables()
    val text =
      explained("SELECT /*+ SKEW('b', 'k', (7, 8)) */ id, name FROM b JOIN i ON b.k = i.k")
    assert(
      text.contains(
        "hint SKEW: left rows of (7), (8) (k) are spread over 16 salts, with a copy of right rows " +
          "for each"),
      text)
    assert(text.contains("left rows: (k, salt, row) → count"), text)
  }

  test("what is wrong with a hint, or can't be done, is said, below to_changelog") {
    tables()
    def refuses(sql: String, argument: String, value: String, expected: String = ""): Unit = {
      val error = checkError(
        "CHANGELOG_ARGUMENT_INVALID",
        "function" -> "the hint SKEW",
        "argument" -> argument,
        "value" -> value)(explained(sql))
      assert(error.getMessage.contains(expected), error)
      ()
    }
    def joined(hint: String, kind: String = ""): String =
      s"SELECT /*+ $hint */ b.id FROM b $kind JOIN i ON b.k = i.k"
    refuses(joined("SKEW"), "parameters", "()")
    refuses(joined("SKEW('x', 'k')"), "name", "'x'", "a table of the SELECT")
    refuses(joined("SKEW('b', 'x', 1)"), "name", "'x'", "columns id, k, v")
    refuses(joined("SKEW('b', 7)"), "columns", "7")
    refuses(joined("SKEW('b', 'k', i.name)"), "values", "i.name")
    refuses(
      joined("SKEW('b', ('k', 'v'), (1, 2, 3))"),
      "values",
      "named_struct('col1', 1, 'col2', 2, 'col3', 3)")
    refuses(joined("SKEW('b', 'k', 'many')"), "values", "'many'", "of type INT")
    refuses(joined("SKEW('b', 'v', 1)"), "columns", "(v)", "compares the columns for equality")
    refuses(joined("SKEW('b', 'k', 1)", "FULL"), "columns", "(k)", "without a match")
    refuses(joined("SKEW('i', 'k', 1)", "LEFT"), "columns", "(k)", "without a match")
    refuses(joined("SKEW('b', 'k', 1)", "RIGHT"), "columns", "(k)", "without a match")
    refuses(joined("SKEW('i', 'k', 1)", "LEFT SEMI"), "columns", "(k)", "without a match")
    refuses(joined("SKEW('b', 'k', 1), SKEW('i', 'k', 1)"), "columns", "(k)", "another hint")
    refuses("SELECT /*+ SKEW('b', 'k', 1) */ k, count(*) FROM b GROUP BY k", "columns", "(k)")
    refuses(
      "SELECT /*+ SKEW('b', 'k', 1) */ b.id FROM b JOIN VALUES (1) AS i(k) ON b.k = i.k",
      "columns",
      "(k)",
      "never changes")
    refuses(
      "SELECT k FROM from_changelog(TABLE(SELECT /*+ SKEW('bids', 'k') */ * FROM bids), " +
        "change_type => 'op')",
      "place",
      "a stream")
  }

  test("elsewhere a hint means nothing, right or wrong") {
    spark.range(3).createOrReplaceTempView("numbers")
    def plan(hint: String): LogicalPlan = spark
      .sql(s"SELECT $hint n.id FROM numbers n JOIN numbers m ON n.id = m.id WHERE n.id > 0")
      .queryExecution
      .optimizedPlan
    for (hint <- Seq("SKEW('n', 'id', 1)", "SKEW('x', 'y')", "SKEW('n', 'id', n.id)", "SKEW")) {
      val hinted = plan(s"/*+ $hint */")
      assert(hinted.collect { case skew: Skew => skew }.isEmpty)
      assert(hinted.canonicalized == plan("").canonicalized)
    }
    assert(spark.table("numbers").hint("skew", "id", 1).count() == 3)
    assert(spark.table("numbers").hint("skew", "none").count() == 3)
  }
}
