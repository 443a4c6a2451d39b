// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import java.math.{BigDecimal, MathContext}

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.testing.{Share, TestShare}

/**
 * How far results are from the true ones, beside batch Spark's over the rows that are left. The
 * truth is computed with as many digits as it takes.
 */
class SignedAccuracySuite extends AnyFunSuite with TestShare {
  private val x = AttributeReference("x", DoubleType)()
  private val y = AttributeReference("y", DoubleType)()
  private val sign = AttributeReference("sign", LongType, nullable = false)()

  /** Runs a function as generated code does, row by row. */
  private class Running(function: DeclarativeAggregate, input: Seq[Attribute]) {
    private val update =
      MutableProjection.create(function.updateExpressions, function.aggBufferAttributes ++ input)
    private val evaluate =
      UnsafeProjection.create(Seq(function.evaluateExpression), function.aggBufferAttributes)
    private val buffer =
      MutableProjection.create(function.initialValues, Nil)(InternalRow.empty).copy()
    private val joined = new JoinedRow
    update.target(buffer)

    def add(row: InternalRow): Unit = update(joined(buffer, row))

    def isNull: Boolean = evaluate(buffer).isNullAt(0)

    def result: Double = evaluate(buffer).getDouble(0)
  }

  private type Pair = (Double, Double)

  private def signedResult(
      function: AggregateFunction,
      kept: Seq[Pair],
      passing: Seq[Pair],
      random: Random): Double = {
    val running = new Running(SignedFunction(function, sign), Seq(x, y, sign))
    val row = new GenericInternalRow(3)
    def change(pair: Pair, sign: Long): Unit = {
      row.update(0, pair._1)
      row.update(1, pair._2)
      row.update(2, sign)
      running.add(row)
    }
    kept.foreach(change(_, 1))
    passing.foreach(change(_, 1))
    random.shuffle(passing).foreach(change(_, -1))
    running.result
  }

  private def batchResult(function: AggregateFunction, rows: Seq[Pair]): Double = {
    val running = new Running(function.asInstanceOf[DeclarativeAggregate], Seq(x, y))
    rows.foreach { case (x, y) => running.add(InternalRow(x, y)) }
    running.result
  }

  private val digits = new MathContext(100)

  /** Sum of (x - mean of x)^i (y - mean of y)^j. */
  private def moment(rows: Seq[Pair], i: Int, j: Int): BigDecimal = {
    val count = new BigDecimal(rows.size)
    def mean(values: Seq[Double]) =
      values.map(new BigDecimal(_)).reduce(_ add _).divide(count, digits)
    val (meanX, meanY) = (mean(rows.map(_._1)), mean(rows.map(_._2)))
    rows
      .map { case (x, y) =>
        val (dx, dy) = (new BigDecimal(x).subtract(meanX), new BigDecimal(y).subtract(meanY))
        dx.pow(i, digits).multiply(dy.pow(j, digits), digits)
      }
      .reduce(_.add(_, digits))
  }

  private def root(value: BigDecimal): BigDecimal = value.sqrt(digits)

  private def truths(rows: Seq[Pair]): Seq[(AggregateFunction, BigDecimal)] = {
    val n = new BigDecimal(rows.size)
    val sum = rows.map(row => new BigDecimal(row._1)).reduce(_ add _)
    val (xx, yy, xy) = (moment(rows, 2, 0), moment(rows, 0, 2), moment(rows, 1, 1))
    Seq(
      Sum(x) -> sum,
      Average(x) -> sum.divide(n, digits),
      VariancePop(x) -> xx.divide(n, digits),
      StddevPop(x) -> root(xx.divide(n, digits)),
      Skewness(x) -> root(n)
        .multiply(moment(rows, 3, 0))
        .divide(root(xx.pow(3, digits)), digits),
      Kurtosis(x) -> n
        .multiply(moment(rows, 4, 0))
        .divide(xx.pow(2, digits), digits)
        .subtract(new BigDecimal(3)),
      CovPopulation(x, y) -> xy.divide(n, digits),
      Corr(x, y) -> xy.divide(root(xx.multiply(yy)), digits),
      RegrSlope(y, x) -> xy.divide(xx, digits))
  }

  private def error(result: Double, truth: BigDecimal): Double =
    new BigDecimal(result).subtract(truth).abs.doubleValue

  /** Values around `mean` with a deviation of 1, partly the same in x and y. */
  private def pairs(random: Random, count: Int, mean: Double): Seq[Pair] = Seq.fill(count) {
    val x = random.nextGaussian()
    (mean + x, mean / 3 + x / 2 + random.nextGaussian())
  }

  for (mean <- Share.of(Seq(1e6, 0.0), oneIn = 2)) {
    test(s"a million rows that came and went leave less error than batch Spark's, mean $mean") {
      val random = new Random(mean.toLong)
      val kept = pairs(random, 1000, mean)
      val passing = pairs(random, 1000000, mean)
      for ((function, truth) <- truths(kept)) {
        val signed = error(signedResult(function, kept, passing, random), truth)
        val batch = error(batchResult(function, kept), truth)
        val last = math.ulp(truth.doubleValue)
        info(f"${function.prettyName}: $signed%.1e, batch $batch%.1e, last digit $last%.1e")
        assert(signed <= math.max(batch, 4 * last), function.prettyName)
      }
    }
  }

  test("rows alike are alike again, whatever came and went") {
    val random = new Random(7)
    val kept = Seq.fill(3)((0.1, 0.7))
    val passing = pairs(random, 100000, 100.0)
    for (function <- Seq(VariancePop(x), VariancePop(y), CovPopulation(x, y))) {
      assert(signedResult(function, kept, passing, random) == 0.0, function.prettyName)
    }
    val running = new Running(SignedFunction(Skewness(x), sign), Seq(x, y, sign))
    passing.foreach { case (x, y) => running.add(InternalRow(x, y, 1L)) }
    kept.foreach { case (x, y) => running.add(InternalRow(x, y, 1L)) }
    passing.foreach { case (x, y) => running.add(InternalRow(x, y, -1L)) }
    assert(running.isNull)
  }

  test(
    "no order of values matters to a total, but for what is 2^106 times less than the largest") {
    def totals(values: Double*): Seq[Double] = values.permutations.toSeq.map { order =>
      signedResult(Sum(x), order.map((_, 0.0)), Nil, new Random(9))
    }
    assert(totals(1e16, 1, -1e16, 3, 0.5).distinct == Seq(4.5))
    assert(totals(9e15, 1, 2, -9e15, -1).distinct == Seq(2.0))
    val (large, larger) = (math.pow(2, 54), math.pow(2, 108))
    val beyond = totals(larger, large, 1, -large, -larger)
    assert(beyond.distinct.size > 1)
    assert(beyond.forall(total => math.abs(total - 1) <= larger * math.pow(2, -106)))
  }

  test("NaN, infinities and values too large to square leave nothing behind") {
    val random = new Random(8)
    val kept = pairs(random, 100, 10.0)
    val special = Seq(Double.NaN, Double.PositiveInfinity, Double.NegativeInfinity)
    for ((function, _) <- truths(kept)) {
      val isTotal = function.isInstanceOf[Sum] || function.isInstanceOf[Average]
      val odd = if (isTotal) special else special ++ Seq(1e200, -1e300)
      val passing = for (x <- odd; y <- odd) yield (x, y)
      assert(
        signedResult(function, kept, passing, random) ==
          signedResult(function, kept, Nil, random),
        function.prettyName)
    }
  }
}
