// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import scala.annotation.nowarn

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.analysis.FunctionRegistry
import org.apache.spark.sql.expressions.{
  Aggregator, MutableAggregationBuffer, UserDefinedAggregateFunction
}
import org.apache.spark.sql.functions.udaf
import org.apache.spark.sql.types._
import org.apache.spark.sql.{Encoder, Encoders, Row}

import org.apache.spark.sql.changelog.testing._

/**
 * Every aggregate function of Spark's registry, with FILTER and DISTINCT, over input that only
 * grows and over input that changes.
 *
 * Where Spark leaves open what the result is, it is brought into a form that isn't open: lists are
 * sorted, sketches are asked for their estimate.
 */
class EveryAggregateFunctionSuite extends AnyFunSuite with ChangelogSession {
  private lazy val oracle = new Oracle(spark)
  private val changing = Feed("t", "g STRING, b BOOLEAN, i INT, d DOUBLE, s STRING, y INT")

  /**
   * A call of a function.
   *
   * @param around
   *   what makes its result comparable, with `?` in place of the call
   * @param distinct
   *   whether Spark allows DISTINCT, and its result is then not left open
   */
  private case class Call(sql: String, around: String = "?", distinct: Boolean = true) {
    def columns: Seq[String] = {
      val filtered = s"$sql FILTER (WHERE y > 1)"
      val once = if (distinct) Seq(sql.replaceFirst("\\(", "(DISTINCT ")) else Nil
      (Seq(sql, filtered) ++ once).map(call => around.replace("?", call))
    }
  }

  // batch Spark's last digits depend on the order of rows
  private val rounded = "round(?, 9)"

  private val families: Seq[(String, Seq[Call])] = Seq(
    "counts and sums" -> Seq(
      Call("count(i)"),
      Call("count_if(b)", distinct = false),
      Call("sum(i)"),
      Call("try_sum(i)"),
      Call("avg(i)"),
      Call("mean(i)"),
      Call("try_avg(i)"),
      Call("regr_count(i, y)", distinct = false)),
    "moments" -> Seq(
      "std",
      "stddev",
      "stddev_pop",
      "stddev_samp",
      "var_pop",
      "var_samp",
      "variance")
      .map(name => Call(s"$name(i)", rounded)),
    "higher moments" -> Seq("skewness", "kurtosis").map(name => Call(s"$name(i)", rounded)),
    "two variables" -> Seq("corr", "covar_pop", "covar_samp").map(name =>
      Call(s"$name(i, y)", rounded)),
    "regression" -> Seq("avgx", "avgy", "intercept", "r2", "slope", "sxx", "sxy", "syy")
      .map(name => Call(s"regr_$name(i, y)", rounded, distinct = false)),
    "booleans" -> Seq("any", "some", "every", "bool_and", "bool_or").map(name =>
      Call(s"$name(b)")),
    "bits" -> Seq("bit_and", "bit_or", "bit_xor").map(name => Call(s"$name(i)", rounded)),
    "best values" -> Seq(
      Call("min(s)"),
      Call("max(s)"),
      Call("min_by(s, concat(i, s, y))"),
      Call("max_by(s, concat(i, s, y))")),
    "best values that have no hash" -> Seq(
      Call("max_by(CAST(i AS VARIANT), concat(i, s, y))", "to_json(?)", distinct = false),
      Call("min_by(array(CAST(i AS VARIANT)), concat(i, s, y))", "to_json(?)", distinct = false),
      Call(
        "max_by(named_struct('v', CAST(s AS VARIANT)), concat(i, s, y))",
        "to_json(?)",
        distinct = false),
      Call("max_by(map('i', i), concat(i, s, y))", distinct = false),
      Call(
        "min_by(CASE WHEN i > 0 THEN st_geomfromwkb(X'0101000000000000000000F03F0000000000000040') END, concat(i, s, y))",
        "hex(st_asbinary(?))",
        distinct = false)),
    "values that have no hash" -> Seq(
      Call("collect_list(CAST(i AS VARIANT))", "size(?)", distinct = false),
      Call("first(CAST(length(g) AS VARIANT))", "to_json(?)", distinct = false),
      Call("last(array(CAST(length(g) AS VARIANT)))", "to_json(?)", distinct = false),
      Call("any_value(CAST(length(g) AS VARIANT))", "to_json(?)", distinct = false),
      Call("mode(CAST(length(g) AS VARIANT))", "to_json(?)", distinct = false)),
    "some value" -> Seq("any_value", "first", "first_value", "last", "last_value")
      .map(name => Call(s"$name(length(g))")),
    "collections" -> Seq(
      Call("collect_list(i)", "sort_array(?)"),
      Call("array_agg(s)", "sort_array(?)"),
      Call("collect_set(i)", "sort_array(?)")),
    // beside DISTINCT calls Spark can't compute WITHIN GROUP of `listagg`
    "lists as texts" -> Seq(
      Call("listagg(s, '-') WITHIN GROUP (ORDER BY s)", distinct = false),
      Call("string_agg(s) WITHIN GROUP (ORDER BY s DESC)", distinct = false)),
    "percentiles" -> Seq(
      Call("median(i)"),
      Call("percentile(i, 0.3)"),
      Call("percentile(i, array(0.1, 0.9), y)", distinct = false),
      Call("percentile_cont(0.4) WITHIN GROUP (ORDER BY d)", distinct = false),
      Call("percentile_disc(0.4) WITHIN GROUP (ORDER BY i DESC)", distinct = false),
      Call("mode(i, true)", distinct = false),
      Call("percentile_approx(i, 0.5)"),
      Call("approx_percentile(i, array(0.2, 0.8), 1000)")),
    "estimates" -> Seq(
      Call("approx_count_distinct(i)"),
      Call("approx_top_k(y, 2)", "size(?)", distinct = false),
      Call("approx_top_k_accumulate(y)", "size(approx_top_k_estimate(?, 2))", distinct = false),
      Call("histogram_numeric(i, 50)", "aggregate(?, 0D, (n, x) -> n + x.y)"),
      Call("count_min_sketch(s, 0.5d, 0.5d, 1)")),
    "bitmaps" -> Seq(
      Call("bitmap_construct_agg(i)", "bitmap_count(?)"),
      Call("bitmap_or_agg(unhex('70'))", "bitmap_count(?)"),
      Call("bitmap_and_agg(unhex('71'))", "bitmap_count(?)")),
    "HyperLogLog and theta sketches" -> Seq(
      Call("hll_sketch_agg(i)", "hll_sketch_estimate(?)"),
      Call("theta_sketch_agg(i)", "theta_sketch_estimate(?)")),
    "quantile sketches" -> Seq(
      Call("kll_sketch_agg_bigint(i)", "kll_sketch_get_n_bigint(?)"),
      Call("kll_sketch_agg_double(d)", "kll_sketch_get_n_double(?)"),
      Call("kll_sketch_agg_float(CAST(d AS FLOAT))", "kll_sketch_get_n_float(?)")),
    "tuple sketches" -> Seq(
      Call("tuple_sketch_agg_double(i, 1.5D)", "tuple_sketch_estimate_double(?)"),
      Call("tuple_sketch_agg_integer(i, 2)", "tuple_sketch_estimate_integer(?)")))

  /** Sketches of sketches, over a query that makes one sketch per value of `y`. */
  private val ofSketches: Seq[(String, String)] = Seq(
    "approx_top_k_accumulate(i)" -> "size(approx_top_k_estimate(approx_top_k_combine(x), 2))",
    "hll_sketch_agg(i)" -> "hll_sketch_estimate(hll_union_agg(x))",
    "theta_sketch_agg(i)" ->
      "theta_sketch_estimate(theta_union_agg(x)), theta_sketch_estimate(theta_intersection_agg(x))",
    "kll_sketch_agg_bigint(i)" ->
      "kll_sketch_get_n_bigint(kll_merge_agg_bigint(x))",
    "kll_sketch_agg_double(d)" ->
      "kll_sketch_get_n_double(kll_merge_agg_double(x))",
    "kll_sketch_agg_float(CAST(d AS FLOAT))" ->
      "kll_sketch_get_n_float(kll_merge_agg_float(x))",
    "tuple_sketch_agg_double(i, 1.5D)" ->
      ("tuple_sketch_estimate_double(tuple_union_agg_double(x)), " +
        "tuple_sketch_estimate_double(tuple_intersection_agg_double(x))"),
    "tuple_sketch_agg_integer(i, 2)" ->
      ("tuple_sketch_estimate_integer(tuple_union_agg_integer(x)), " +
        "tuple_sketch_estimate_integer(tuple_intersection_agg_integer(x))"))

  private val inserts = Seq(
    Seq("+I a true 1 1.5 x 1", "+I a false 2 2.5 y 2", "+I b NULL NULL NULL NULL 3"),
    Seq(
      "+I a true 2 -2.0 y 3",
      "+I a true 1 1.5 x 1",
      "+I b false 7 0.0 z 2",
      "+I c true 5 5.0 w 5"),
    Seq("+I b true 7 0.25 zz 4", "+I a NULL NULL NULL NULL NULL", "+I c true 6 6.0 v 1"))
  private val retractions = Seq(
    Seq("-D a true 1 1.5 x 1", "-U b false 7 0.0 z 2", "+U b false 9 9.5 z 1"),
    Seq(
      "-D c true 5 5.0 w 5",
      "-D c true 6 6.0 v 1",
      "-D a true 2 -2.0 y 3",
      "+I b true 3 3.0 u 3"),
    Seq("-D a true 1 1.5 x 1", "-D a false 2 2.5 y 2", "-D b NULL NULL NULL NULL 3"))

  private def check(sql: String): Unit = {
    // correlations divide by zero here and there, which ANSI mode doesn't allow
    val variant = Variant(conf = Map("spark.sql.ansi.enabled" -> "false"))
    val growing = changing.copy(insertOnly = true)
    if (Share.ofWays(Seq(true, false), sql).head)
      oracle.check(Program(Seq(growing), sql, inserts.map(Step(growing, _: _*))), variant)
    val all = inserts ++ retractions
    val interpreted = variant.copy(conf = variant.conf ++ ChangelogSession.Interpreted)
    oracle.check(Program(Seq(changing), sql, all.map(Step(changing, _: _*))), interpreted)
    ()
  }

  private def functionsIn(sql: String): Seq[String] =
    "\\b([a-z_0-9]+)\\(".r.findAllMatchIn(sql).map(_.group(1)).toSeq

  /** Whether this version of Spark has all the functions. */
  private def isKnown(sql: String): Boolean =
    functionsIn(sql).forall(FunctionRegistry.expressions.contains)

  for {
    (family, all) <- families
    calls = all.filter(call => isKnown(call.sql)) if calls.nonEmpty
  }
    test(s"$family: ${calls.map(_.sql.takeWhile(_ != '(')).distinct.mkString(", ")}") {
      check(s"SELECT g, ${calls.flatMap(_.columns).mkString(", ")} FROM t GROUP BY g")
    }

  for ((inner, outer) <- ofSketches if isKnown(inner) && isKnown(outer))
    test(s"sketches of sketches: $outer") {
      check(
        s"SELECT g, $outer FROM (SELECT g, $inner AS x FROM t WHERE i IS NOT NULL GROUP BY g, y) " +
          "GROUP BY g")
    }

  test("listagg over distinct values") {
    // Spark can't compute it beside another DISTINCT, or with a FILTER
    check("SELECT g, listagg(DISTINCT s, '-') WITHIN GROUP (ORDER BY s) FROM t GROUP BY g")
  }

  test("functions of one's own, written as an Aggregator or in the old way") {
    oracle.inSessions { session =>
      session.udf.register("longest", udaf(Longest))
      session.udf.register("total", new OldTotal): @nowarn("cat=deprecation")
    }
    check("""SELECT g, longest(s), longest(s) FILTER (WHERE y > 1), longest(DISTINCT s), total(i),
        |total(DISTINCT i), count(*) FROM t GROUP BY g""".stripMargin)
  }

  test("grouping and grouping_id") {
    check(
      "SELECT g, y, grouping(g), grouping_id(), count(DISTINCT i) FROM t GROUP BY CUBE (g, y)")
  }

  test("Spark has no other aggregate function") {
    val texts = families.flatMap(_._2.map(_.sql)) ++ ofSketches.flatMap { case (a, b) =>
      Seq(a, b)
    } ++
      // `measure` computes what a metric view has defined by other functions
      Seq("grouping(", "grouping_id(", "measure(")
    val tested = texts.flatMap(functionsIn).toSet
    val all = FunctionRegistry.expressions.collect {
      case (name, (info, _)) if info.getGroup == "agg_funcs" => name
    }.toSet
    assert((all -- tested).isEmpty)
  }
}

/** The longest text, of several the last in the alphabet. */
private object Longest extends Aggregator[String, String, String] {
  override def zero: String = ""

  override def reduce(longest: String, text: String): String = merge(longest, text)

  override def merge(left: String, right: String): String =
    Seq(left, right).filter(_ != null).maxBy(text => (text.length, text))

  override def finish(longest: String): String = longest

  override def bufferEncoder: Encoder[String] = Encoders.STRING

  override def outputEncoder: Encoder[String] = Encoders.STRING
}

/** A sum, as such functions were written before there was `Aggregator`. */
@nowarn("cat=deprecation")
private class OldTotal extends UserDefinedAggregateFunction {
  override def inputSchema: StructType = StructType.fromDDL("value INT")

  override def bufferSchema: StructType = StructType.fromDDL("total BIGINT")

  override def dataType: DataType = LongType

  override def deterministic: Boolean = true

  override def initialize(buffer: MutableAggregationBuffer): Unit = buffer(0) = 0L

  override def update(buffer: MutableAggregationBuffer, input: Row): Unit =
    if (!input.isNullAt(0)) buffer(0) = buffer.getLong(0) + input.getInt(0)

  override def merge(buffer: MutableAggregationBuffer, other: Row): Unit =
    buffer(0) = buffer.getLong(0) + other.getLong(0)

  override def evaluate(buffer: Row): Any = buffer.getLong(0)
}
