// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

class ChangelogJoinSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.MostlyInterpreted)

  private lazy val oracle = new Oracle(spark)
  private val l = Feed("l", "a INT, b STRING")
  private val r = Feed("r", "c INT, d STRING")

  private val variants = Seq(Variant(), Variant(restart = true, conf = Variant.RocksDB))

  private def texts(changes: Seq[Seq[Change]]): Seq[Seq[String]] =
    changes.map(_.map(_.toString).sorted)

  private def both(left: Seq[String], right: Seq[String]): Step =
    Step(Step(l, left: _*).changes ++ Step(r, right: _*).changes)

  /** Rows that come, change, move to other join keys and go, on both sides, with NULLs. */
  private val steps = Seq(
    both(Seq("+I 1 x", "+I 1 x", "+I 2 y", "+I NULL n"), Seq("+I 1 p", "+I 3 q", "+I NULL m")),
    both(Seq("+I 3 z"), Seq("+I 1 p2", "+I 2 NULL")),
    both(Seq("-U 1 x", "+U 2 x"), Nil),
    both(Nil, Seq("-U 2 NULL", "+U 1 o", "-D NULL m")),
    both(Seq("-D 1 x", "-D NULL n"), Seq("-D 1 p", "+I 1 p")),
    both(Seq("+I 1 w"), Seq("-D 1 p", "-D 1 p2", "-D 1 o")),
    both(Seq("-D 2 x", "+I 2 x", "-D 3 z"), Seq("-D 3 q", "+I 2 p")),
    both(Seq("-D 2 x", "-D 2 y", "-D 1 w"), Seq("-D 2 p")))

  private def check(sql: String, variants: Seq[Variant] = variants.take(1)): Unit =
    Share.check(oracle, Program(Seq(l, r), sql, steps), variants)

  test("an inner join gives the pairs that come and takes back those that go") {
    val program = Program(
      Seq(l, r),
      "SELECT a, b, d FROM l JOIN r ON a = c",
      Seq(
        both(Seq("+I 1 x", "+I 2 y"), Seq("+I 1 p")),
        both(Nil, Seq("+I 1 q", "+I 2 s")),
        both(Seq("-U 1 x", "+U 1 z"), Nil),
        both(Seq("-D 2 y"), Seq("-D 2 s")),
        both(Seq("-D 1 z"), Seq("-D 1 p"))))
    assert(
      texts(oracle.check(program)) == Seq(
        Seq("+I 1 x p"),
        Seq("+I 1 x q", "+I 2 y s"),
        Seq("+I 1 z p", "+I 1 z q", "-D 1 x p", "-D 1 x q"),
        Seq("-D 2 y s"),
        Seq("-D 1 z p", "-D 1 z q")))
    Share.check(oracle, program, variants)
  }

  test("a full join by USING is kept by its columns, and joined by them") {
    val left = Feed("l", "k INT, j INT, b STRING", Seq("k", "j"))
    val right = Feed("r", "k INT, j INT, d STRING", Seq("k", "j"))
    def step(l: String*)(r: String*) = Step.of(left -> l, right -> r)
    val steps = Seq(
      step("+I 1 1 x", "+I 1 2 y", "+I 2 1 z")("+I 1 1 p", "+I 3 1 q"),
      step("-D 1 1 x", "+I 3 1 v")("+I 1 2 p"),
      step("-U 1 2 y", "+U 1 2 w", "+I 1 1 n")("-D 1 1 p", "-U 3 1 q", "+U 3 1 o"),
      step("-D 3 1 v", "-D 2 1 z")("-D 3 1 o", "+I 2 1 u"))
    val joined = "SELECT * FROM l FULL JOIN r USING (k, j)"
    val upsert = Variant("upsert", Seq("k", "j"))
    Share.check(oracle, Program(Seq(left, right), joined, steps), variants :+ upsert)
    val again = s"SELECT * FROM ($joined) a FULL JOIN (SELECT k, j, b AS c FROM l) c USING (k, j)"
    Share.check(oracle, Program(Seq(left, right), again, steps), variants.take(1) :+ upsert)
    val looked =
      s"SELECT k, j, a.d, r.d AS e FROM ($joined WHERE k < 9) a LEFT JOIN r USING (k, j)"
    Share.check(oracle, Program(Seq(left, right), looked, steps), Seq(upsert))
  }

  test("a join key may be NULL, or have NULLs within, on one side only") {
    // of which the left side's type says that there are none
    val never = "(SELECT a, coalesce(b, '') AS k, array(coalesce(b, '')) AS ks FROM l)"
    val letters = Seq("a", "b", "c", "d", "e", "f")
    val steps = Seq(
      both(letters.map("+I 1 " + _), ("NULL" +: letters).map("+I 2 " + _)),
      both(Seq("-D 1 b", "+I 3 z"), Seq("-D 2 NULL", "-D 2 c", "+I 3 NULL", "+I 3 z")))
    for (joinType <- Seq("RIGHT", "FULL"); key <- Seq("k = d", "ks <=> array(d)")) {
      val sql = s"SELECT a, k, c, d FROM $never $joinType JOIN r ON $key"
      oracle.check(Program(Seq(l, r), sql, steps))
    }
  }

  test("a key that holds a fifth of all rows is joined some rows at a time") {
    def rows(count: Int)(value: Int => String) =
      (0 until count).map(row => s"${if (row % 5 == 0) 0 else row} ${value(row)}")
    val come = rows(2000)(row => s"v${row % 700}")
    val right = rows(60)(row => s"w${row % 20}")
    val (gone, kept) = come.splitAt(1500)
    val program = Program(
      Seq(l, r),
      "SELECT a, count(*) AS n, count(d) AS m, max(b) AS b FROM l LEFT JOIN r ON a = c AND d < b " +
        "GROUP BY a",
      Seq(
        both(come.map("+I " + _), right.map("+I " + _)),
        both(gone.map("-D " + _), Nil),
        both(kept.map("-D " + _), right.map("-D " + _))))
    oracle.check(program, Variant(conf = Map("spark.sql.changelog.join.rowsAtOnce" -> "100")))
  }

  test("EXISTS beside other conditions is a flag that comes and goes") {
    check("SELECT a, b FROM l WHERE b = 'z' OR EXISTS (SELECT * FROM r WHERE a = c)")
    check(
      "SELECT a, b FROM l WHERE b = 'z' OR a IN (SELECT c FROM r WHERE length(d) < length(b))")
  }

  test("NOT IN is false or unknown where a NULL is on either side") {
    check("SELECT a, b FROM l WHERE a NOT IN (SELECT c FROM r)")
    check("SELECT a, b FROM l WHERE a NOT IN (SELECT c FROM r WHERE d < b)")
  }

  test("a scalar subquery is joined, whatever it gives") {
    check("SELECT a, b FROM l WHERE a < (SELECT max(c) FROM r)")
    check("SELECT a, (SELECT count(*) FROM r WHERE a = c) AS n FROM l")
  }

  test("a scalar subquery with more than one row fails as it does in batch") {
    val program = Program(
      Seq(l, r),
      "SELECT a, (SELECT d FROM r) AS d FROM l",
      Seq(both(Seq("+I 1 x"), Seq("+I 1 p")), both(Nil, Seq("-D 1 p", "+I 2 q"))))
    Share.check(oracle, program, variants)
    val tooMany = program.copy(steps = program.steps :+ both(Nil, Seq("+I 3 s")))
    val error = intercept[Throwable](oracle.check(tooMany))
    assert(
      Iterator
        .iterate(error)(_.getCause)
        .takeWhile(_ != null)
        .exists(_.getMessage.contains("SCALAR_SUBQUERY_TOO_MANY_ROWS")))
  }

  test("a table is joined with itself, and a join with an aggregate of a join") {
    check("SELECT x.a, x.b, y.b AS c FROM l x JOIN l y ON x.a = y.a")
    check("""SELECT l.a, n, d FROM l
      |JOIN (SELECT a, count(*) AS n FROM l LEFT JOIN r ON a = c GROUP BY a) s ON l.a = s.a
      |LEFT JOIN r ON n = c""".stripMargin)
  }

  test("a static side is looked up in each batch") {
    val names = "VALUES (1, 'one'), (2, 'two'), (2, 'deux') AS s(k, name)"
    check(s"SELECT a, b, name FROM l JOIN $names ON a = k")
    check(s"SELECT a, b, name FROM l LEFT JOIN $names ON a = k")
    check(s"SELECT a, b, name FROM $names RIGHT JOIN l ON a = k AND name <> 'two'")
    check(s"SELECT a, b FROM l WHERE a NOT IN (SELECT k FROM $names)")
  }

  test("NaN equals NaN and zeros of either sign are equal, also within a key") {
    val x = Feed("x", "a DOUBLE, b FLOAT")
    val y = Feed("y", "c DOUBLE, d FLOAT")
    def step(left: Seq[String], right: Seq[String]) =
      Step(Step(x, left: _*).changes ++ Step(y, right: _*).changes)
    Share.check(
      oracle,
      Program(
        Seq(x, y),
        "SELECT a, b, c, d FROM x FULL JOIN y ON a = c AND b <=> d",
        Seq(
          step(Seq("+I NaN 1.0", "+I 0.0 -0.0", "+I 1.5 NULL"), Seq("+I NaN 1.0")),
          step(Seq("+I -0.0 0.0"), Seq("+I -0.0 0.0", "+I 1.5 NULL", "+I NULL NULL")),
          step(Seq("-D 0.0 -0.0", "-D NaN 1.0"), Seq("-D 1.5 NULL")))),
      variants)
  }

  test("texts that a collation finds equal match") {
    val x = Feed("x", "a STRING, n INT")
    val y = Feed("y", "c STRING, m INT")
    def step(left: Seq[String], right: Seq[String]) =
      Step(Step(x, left: _*).changes ++ Step(y, right: _*).changes)
    Share.check(
      oracle,
      Program(
        Seq(x, y),
        "SELECT a, n, c, m FROM x LEFT JOIN y ON a COLLATE UTF8_LCASE = c",
        Seq(
          step(Seq("+I a 1", "+I B 2"), Seq("+I A 1")),
          step(Seq("+I A 3", "-D a 1"), Seq("+I b 2", "-U A 1", "+U a 1")),
          step(Seq("+I a 4"), Seq("-D a 1")))),
      variants)
  }

  test("rows are replaced on both sides, whether or not old rows are kept for a time") {
    val x = Feed("x", "k INT, a STRING", Seq("k"), upsert = true)
    val y = Feed("y", "k INT, b STRING", Seq("k"), upsert = true)
    def step(left: Seq[String], right: Seq[String]) =
      Step(Step(x, left: _*).changes ++ Step(y, right: _*).changes)
    val program = Program(
      Seq(x, y),
      "SELECT x.k, a, b FROM x LEFT JOIN y ON x.k = y.k",
      Seq(
        step(Seq("+I 1 a", "+I 2 a"), Seq("+I 1 b", "+I 3 b")),
        step(Seq("+U 1 a2", "+I 3 a"), Seq("+U 1 b2", "+I 2 b")),
        step(Seq("-D 2 a", "+U 3 a2"), Seq("-D 1 b2", "+U 3 b2")),
        step(Seq("+I 2 a3"), Seq("-D 3 b2", "+I 1 b3"))))
    val ttl = Map("spark.sql.changelog.state.ttl" -> "1h")
    for (mode <- Seq(Variant(), Variant("upsert", Seq("k")));
      conf <- Seq(Map.empty[String, String], ttl))
      oracle.check(program, mode.copy(conf = conf, restart = conf.nonEmpty))
  }

  test("a hot key meets many rows") {
    val rows = (1 to 300).map(n => s"+I 1 x$n")
    oracle.check(
      Program(
        Seq(l, r),
        "SELECT a, b, d FROM l LEFT JOIN r ON a = c AND length(b) > length(d)",
        Seq(
          both(rows, Seq("+I 1 p")),
          both(Nil, Seq("+I 1 qq", "+I 1 rrr", "-D 1 p")),
          both(rows.take(150).map(_.replace("+I", "-D")), Seq("-D 1 qq")))))
  }

  for {
    kind <- Seq("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
    (form, on) <- Seq(
      "equal keys" -> "a = c",
      "null-safe keys" -> "a <=> c",
      "equal keys and a condition" -> "a = c AND length(b) <= length(d)",
      "no equal keys" -> "a < c OR b = d")
  } test(s"$kind join, $form") {
    // where most is kept, also as it is restarted from
    val restarts = form.endsWith("condition") && Set("FULL", "LEFT ANTI")(kind)
    check(s"SELECT * FROM l $kind JOIN r ON $on", if (restarts) variants else variants.take(1))
  }
}
