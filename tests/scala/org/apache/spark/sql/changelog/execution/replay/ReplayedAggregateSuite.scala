// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.expressions.Aggregator
import org.apache.spark.sql.{Encoder, Encoders, functions}

import org.apache.spark.sql.changelog.testing._

/** Aggregates that are computed anew from the rows of each group that changes. */
class ReplayedAggregateSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private lazy val oracle = new Oracle(spark)
  private val variants = Seq(Variant(), Variant(restart = true, conf = Variant.RocksDB))
  private val words = Feed("words", "word STRING, n INT")

  private def texts(changes: Seq[Seq[Change]]): Seq[Seq[String]] =
    changes.map(_.map(_.toString).sorted)

  private val steps = Seq(
    Step(words, "+I a 3", "+I a 1", "+I a NULL", "+I b 2", "+I a 3"),
    Step(words, "-D a 3", "+I c 7", "-U b 2", "+U b 5"),
    Step(words, "-D a 3", "-D c 7", "+I a 1"),
    Step(words, "+I b 9", "-D b 9"),
    Step(words, "-D a 1", "-D a 1", "-D a NULL", "-D b 5"))

  private def checkGrouped(functions: Seq[String]): Unit = {
    val sql = s"SELECT word, ${named(functions)} FROM words GROUP BY word"
    Share.check(oracle, Program(Seq(words), sql, steps), variants)
  }

  private def checkFunctions(functions: Seq[String]): Unit = {
    checkGrouped(functions)
    Share.check(
      oracle,
      Program(Seq(words), s"SELECT ${named(functions)} FROM words", steps),
      variants)
  }

  private def named(functions: Seq[String]): String =
    functions.zipWithIndex.map { case (call, index) => s"$call AS c$index" }.mkString(", ")

  test("a list of a group's values is taken back and given anew") {
    val program = Program(
      Seq(words),
      "SELECT word, sort_array(collect_list(n)) AS ns FROM words GROUP BY word",
      steps)
    assert(
      texts(oracle.check(program)) == Seq(
        Seq("+I a ArraySeq(1, 3, 3)", "+I b ArraySeq(2)"),
        Seq(
          "+I c ArraySeq(7)",
          "+U a ArraySeq(1, 3)",
          "+U b ArraySeq(5)",
          "-U a ArraySeq(1, 3, 3)",
          "-U b ArraySeq(2)"),
        Seq("+U a ArraySeq(1, 1)", "-D c ArraySeq(7)", "-U a ArraySeq(1, 3)"),
        Nil,
        Seq("-D a ArraySeq(1, 1)", "-D b ArraySeq(5)")))
    Share.check(oracle, program, variants)
  }

  test("lists and sets of values") {
    checkFunctions(
      Seq(
        "sort_array(collect_list(n))",
        "sort_array(collect_set(n))",
        "sort_array(array_agg(n)) ",
        "listagg(DISTINCT CAST(n AS STRING), ',') WITHIN GROUP (ORDER BY CAST(n AS STRING))",
        "listagg(CAST(n AS STRING), '-') WITHIN GROUP (ORDER BY n DESC)"))
  }

  test("percentiles, modes and estimates") {
    checkFunctions(
      Seq(
        "percentile(n, 0.3)",
        "median(n)",
        "percentile_cont(0.25) WITHIN GROUP (ORDER BY n DESC)",
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY n)",
        "mode(n, true)",
        "approx_percentile(n, array(0.1, 0.9), 100)",
        "approx_count_distinct(n)",
        "aggregate(histogram_numeric(n, 2), 0D, (sum, bin) -> sum + bin.y)",
        "size(approx_top_k(n))"))
  }

  test("sketches and bitmaps") {
    checkFunctions(
      Seq(
        "hex(bitmap_construct_agg(bitmap_bit_position(n)))",
        "hll_sketch_estimate(hll_sketch_agg(n))",
        "theta_sketch_estimate(theta_sketch_agg(n))",
        "hex(count_min_sketch(n, 0.5d, 0.5d, 1))"))
  }

  test("functions that take one row's value") {
    // whatever the order of rows, these are the same
    checkGrouped(
      Seq(
        "first(word)",
        "last(word, true)",
        "any_value(word)",
        "any_value(CASE WHEN n > 4 THEN 1 END, true)",
        "max_by(word, n)"))
  }

  test("calls with a filter, of distinct values, in expressions") {
    checkFunctions(
      Seq(
        "sort_array(collect_list(n) FILTER (WHERE n > 1))",
        "count(DISTINCT n) FILTER (WHERE n < 5)",
        "sort_array(collect_list(DISTINCT n % 2))",
        "sum(DISTINCT n)",
        "count(*)",
        "CASE WHEN count(*) > 2 THEN median(n) ELSE size(collect_set(n)) END"))
  }

  test("a constant in a list, which needs no column at all") {
    checkFunctions(Seq("collect_list(1)"))
  }

  test("a function of Scala") {
    val longest = new Aggregator[String, String, String] {
      override def zero: String = ""
      override def reduce(buffer: String, value: String): String =
        if (value != null && value.length > buffer.length) value else buffer
      override def merge(left: String, right: String): String = reduce(left, right)
      override def finish(buffer: String): String = buffer
      override def bufferEncoder: Encoder[String] = Encoders.STRING
      override def outputEncoder: Encoder[String] = Encoders.STRING
    }
    oracle.inSessions(_.udf.register("longest", functions.udaf(longest, Encoders.STRING)))
    checkFunctions(Seq("longest(repeat('x', n))", "longest(repeat('x', n)) FILTER (WHERE n < 6)"))
  }

  test("groups of floating point, by an expression, by a constant") {
    val numbers = Feed("numbers", "x DOUBLE, n INT")
    val steps = Seq(
      Step(numbers, "+I -0.0 1", "+I 0.0 2", "+I NaN 3", "+I NULL 4"),
      Step(numbers, "-D -0.0 1", "+I NaN 5"),
      Step(numbers, "-D NaN 3", "-D NaN 5", "-D 0.0 2", "-D NULL 4"))
    def program(sql: String) = Program(Seq(numbers), sql, steps)
    Share.check(
      oracle,
      program("SELECT x, sort_array(collect_list(n)), median(n) FROM numbers GROUP BY x"))
    // a feed with before images reads -0.0 as 0.0
    Share.check(
      oracle,
      program(
        "SELECT sort_array(collect_list(CAST(abs(x) AS STRING))), x AS y FROM numbers GROUP BY x"),
      Seq(Variant()))
    Share.check(
      oracle,
      program("SELECT n % 2 + 1 AS m, median(x) FROM numbers GROUP BY n % 2"),
      Seq(Variant()))
    Share.check(oracle, program("SELECT median(n) FROM numbers GROUP BY 'all'"), Seq(Variant()))
    Share.check(
      oracle,
      program("SELECT n, x, median(n) FROM numbers GROUP BY ROLLUP(n, x)"),
      Seq(Variant()))
  }

  test("upsert mode sends no before images, nor does a reader below get them") {
    val sql = "SELECT word, median(n) AS m FROM words GROUP BY word"
    val program = Program(Seq(words), sql, steps)
    val emitted = oracle.check(program, Variant(mode = "upsert", key = Seq("word")))
    assert(texts(emitted)(1) == Seq("+I c 7.0", "+U a 2.0", "+U b 5.0"))
    Share.check(
      oracle,
      Program(
        Seq(words),
        s"SELECT m, count(*), sort_array(collect_list(word)) FROM ($sql) GROUP BY m",
        steps),
      variants)
  }

  test("functions see rows in the order of the columns they name, in every batch") {
    val pairs = Feed("pairs", "g INT, a STRING, b INT")
    val rows = for (g <- 1 to 300; (a, b) <- Seq("y" -> 1, "x" -> 3, "x" -> 2)) yield s"$g $a $b"
    val program = Program(
      Seq(pairs),
      """SELECT g, collect_list(b) AS bs, collect_list(a) AS `as`, any_value(b), listagg(a)
        |FROM pairs GROUP BY g""".stripMargin,
      Seq(
        Step(pairs, rows.map("+I " + _): _*),
        Step(pairs, (1 to 300 by 2).map(g => s"+I $g z 0"): _*),
        Step(pairs, rows.map("-D " + _): _*)))
    Seq(Map.empty[String, String], Variant.RocksDB).foreach { conf =>
      val emitted = oracle.run(program, Variant(conf = conf))
      def texts(kind: String, batch: Int) =
        emitted(batch)
          .filter(_.kind == kind)
          .map(change => TextChangelog.format(change.row))
          .toSet
      val old = (1 to 300).map(g => s"$g ArraySeq(1, 2, 3) ArraySeq(y, x, x) 1 yxx").toSet
      val odd = (1 to 300 by 2).map { g =>
        s"$g ArraySeq(0, 1, 2, 3) ArraySeq(z, y, x, x) 0 zyxx"
      }.toSet
      assert(texts("+I", 0) == old)
      assert(texts("-U", 1) == old.filter(_.takeWhile(_ != ' ').toInt % 2 == 1))
      assert(texts("+U", 1) == odd)
      assert(texts("-U", 2) == odd && texts("-D", 2).size == 150)
    }
  }
}
