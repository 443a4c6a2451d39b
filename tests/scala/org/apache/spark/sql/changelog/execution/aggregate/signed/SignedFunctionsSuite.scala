// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Every function with a signed buffer, over rows that come and go, against batch Spark. */
class SignedFunctionsSuite extends AnyFunSuite with ChangelogSession {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.MostlyInterpreted)

  private lazy val oracle = new Oracle(spark)
  private val pairs = Feed("pairs", "g INT, x DOUBLE, y DOUBLE")
  private val flags = Feed("flags", "g INT, b BOOLEAN")
  private val integers = Feed("integers", "g INT, a TINYINT, b SMALLINT, c INT, d BIGINT")

  private val bothPhases = Seq(Variant(), Variant(conf = Variant.OnePhase))
  private val legacy =
    Variant(conf = Map("spark.sql.legacy.statisticalAggregate" -> "true"))

  private val functions = Map(
    "moments" -> Seq(
      "var_pop(x)",
      "var_samp(x)",
      "stddev_pop(x)",
      "stddev_samp(x)",
      "skewness(x)",
      "kurtosis(x)",
      "var_pop(x) FILTER (WHERE y > 2)"),
    "covariances" -> Seq("covar_pop(x, y)", "covar_samp(x, y)", "regr_sxy(y, x)"),
    "regressions" -> Seq(
      "regr_count(y, x)",
      "regr_avgx(y, x)",
      "regr_avgy(y, x)",
      "regr_sxx(y, x)",
      "regr_syy(y, x)",
      "regr_r2(y, x)",
      "regr_slope(y, x)",
      "regr_intercept(y, x)"))

  private def query(functions: Seq[String], table: String): String =
    s"SELECT g, ${functions.mkString(", ")} FROM $table GROUP BY g"

  // batch Spark's moments, updated row by row, are off in the last digits already
  private def rounded(calls: Seq[String]): Seq[String] = calls.map { call =>
    if (call.contains("FILTER")) call else s"round($call, 9)"
  }

  private val comeAndGo = Seq(
    Step(pairs, "+I 1 1.0 3.0", "+I 2 NULL 1.0", "+I 3 1.0 NULL"),
    Step(pairs, "+I 1 3.0 7.0", "+I 2 NULL 2.0"),
    Step(pairs, "-D 1 1.0 3.0", "+I 2 4.0 2.0", "-D 3 1.0 NULL"),
    Step(pairs, "+I 1 3.0 9.0"),
    Step(pairs, "+I 1 3.0 8.0", "+I 1 3.0 8.0", "-U 2 NULL 1.0", "+U 2 2.0 2.0"),
    Step(pairs, "-D 1 3.0 8.0", "-D 1 3.0 8.0", "-D 1 3.0 9.0", "-D 1 3.0 7.0"))

  private val notFinite = Seq(
    Step(pairs, "+I 1 NaN 1.0", "+I 2 1.0 NaN", "+I 3 Infinity 1.0", "+I 4 1.0 -Infinity"),
    Step(pairs, "+I 1 1.0 1.0", "+I 2 1.0 2.0", "-D 3 Infinity 1.0", "-D 4 1.0 -Infinity"),
    Step(pairs, "+I 1 3.0 2.0", "+I 2 3.0 2.0", "+I 3 1.0 2.0", "+I 4 1.0 -2.0"),
    Step(pairs, "-D 1 NaN 1.0", "-D 2 1.0 NaN", "+I 3 3.0 2.0", "+I 3 NaN -Infinity"))

  for ((name, calls) <- functions) {
    test(s"$name of no, one, equal and different rows") {
      Share.check(
        oracle,
        Program(Seq(pairs), query(rounded(calls), "pairs"), comeAndGo),
        bothPhases :+ legacy)
    }

    test(s"$name with NaN and infinities that come and go") {
      oracle.check(Program(Seq(pairs), query(rounded(calls), "pairs"), notFinite))
    }

    test(s"$name over rows that only come") {
      val appended = pairs.copy(insertOnly = true)
      val steps = comeAndGo.map { step =>
        Step(step.changes.map { case (table, changes) =>
          table -> changes.filter(_.kind == "+I")
        })
      }
      oracle.check(Program(Seq(appended), query(rounded(calls), "pairs"), steps.take(3)))
    }
  }

  test("a correlation of one, equal and different rows, where dividing by zero gives NULL") {
    val lenient = Map("spark.sql.ansi.enabled" -> "false")
    for (steps <- Seq(comeAndGo, notFinite)) {
      Share.check(
        oracle,
        Program(Seq(pairs), query(rounded(Seq("corr(x, y)")), "pairs"), steps),
        bothPhases.map(variant => variant.copy(conf = variant.conf ++ lenient)))
    }
  }

  test("booleans") {
    val calls = Seq(
      "bool_and(b)",
      "bool_or(b)",
      "every(b)",
      "some(b)",
      "any(b)",
      "min(b)",
      "max(b)",
      "count_if(b)",
      "bool_or(b) FILTER (WHERE NOT b)")
    Share.check(
      oracle,
      Program(
        Seq(flags),
        query(calls, "flags"),
        Seq(
          Step(flags, "+I 1 true", "+I 2 NULL"),
          Step(flags, "+I 1 false", "+I 2 false", "+I 1 NULL"),
          Step(flags, "-D 1 true", "+I 2 true"),
          Step(flags, "-D 1 false", "-D 2 false"),
          Step(flags, "-D 1 NULL", "-D 2 true"))),
      bothPhases)
  }

  for (column <- Seq("a", "b", "c", "d")) {
    test(s"bits of ${integers.schema(column).dataType.sql}") {
      val calls = Seq("bit_and", "bit_or", "bit_xor").map(function => s"$function($column)")
      Share.check(
        oracle,
        Program(
          Seq(integers),
          query(calls, "integers"),
          Seq(
            Step(integers, s"+I 1 -128 -32768 ${Int.MinValue} ${Long.MinValue}"),
            Step(integers, "+I 1 -1 -1 -1 -1", "+I 2 NULL NULL NULL NULL"),
            Step(integers, "+I 1 5 5 5 5", "+I 2 6 6 6 6", "+I 2 6 6 6 6"),
            Step(integers, s"-D 1 -128 -32768 ${Int.MinValue} ${Long.MinValue}"),
            Step(integers, s"+I 1 127 32767 ${Int.MaxValue} ${Long.MaxValue}"),
            Step(integers, "-D 1 -1 -1 -1 -1", "-D 2 6 6 6 6"),
            Step(integers, "-D 1 5 5 5 5", "-D 2 6 6 6 6"))),
        bothPhases)
    }
  }
}
