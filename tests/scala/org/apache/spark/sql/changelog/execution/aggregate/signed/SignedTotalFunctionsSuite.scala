// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import java.math.{BigDecimal, BigInteger}

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkArithmeticException
import org.apache.spark.sql.types.Decimal

class SignedTotalFunctionsSuite extends AnyFunSuite {
  import SignedTotalFunctions._

  private def halves(values: Seq[Long]): (Long, Long) =
    (values.map(_ >> 32).sum, values.map(_ & 0xffffffffL).sum)

  private def sum(values: Long*)(ansi: Boolean = true, try_ : Boolean = false): java.lang.Long = {
    val (high, low) = halves(values)
    toLong(high, low, ansi, try_)
  }

  test("a total is exact up to the last BIGINT, in any order") {
    assert(sum(Long.MaxValue)() == Long.MaxValue)
    assert(sum(Long.MinValue)() == Long.MinValue)
    assert(sum(Long.MaxValue, Long.MaxValue, Long.MinValue)() == Long.MaxValue - 1)
    assert(sum(Long.MinValue, Long.MinValue, Long.MaxValue, Long.MaxValue)() == -2)
    assert(sum(Long.MaxValue - 1, 1)() == Long.MaxValue)
    assert(sum(Long.MinValue + 1, -1)() == Long.MinValue)
  }

  test("a total beyond BIGINT fails, is NULL, or wraps") {
    for (values <- Seq(Seq(Long.MaxValue, 1L), Seq(Long.MinValue, -1L))) {
      val error = intercept[SparkArithmeticException](sum(values: _*)())
      assert(error.getCondition.startsWith("ARITHMETIC_OVERFLOW"))
      assert(sum(values: _*)(try_ = true) == null)
      assert(sum(values: _*)(ansi = false) == values.sum)
    }
  }

  test("totals of random BIGINTs agree with unbounded integers") {
    val random = new Random(1)
    for (_ <- 1 to 10000) {
      val values = Seq.fill(1 + random.nextInt(20))(random.nextLong() >> random.nextInt(64))
      val exact = values.map(BigInteger.valueOf).reduce(_ add _)
      val (high, low) = halves(values)
      assert(toLong(high, low, ansi = false, try_ = false) == exact.longValue)
      assert(
        toLong(high, low, ansi = true, try_ = true) ==
          (if (exact.bitLength > 63) null else Long.box(exact.longValue)))
      assert(math.abs(toDouble(high, low) - exact.doubleValue) <= math.ulp(exact.doubleValue))
    }
  }

  test("a total of more than 2^31 small negative BIGINTs is exact") {
    for (value <- Seq(-1L, -2L, -3L); count <- Seq(1L << 31, (1L << 31) + 1, (1L << 32) - 1)) {
      // the lower half wraps as a BIGINT does
      val (high, low) = ((value >> 32) * count, (value & 0xffffffffL) * count)
      assert(toLong(high, low, ansi = true, try_ = false) == value * count)
      assert(toDouble(high, low) == (value * count).toDouble)
    }
  }

  test("a total of rows that are taken back before they come is exact") {
    val (high, low) = halves(Seq(-1L, 3L))
    assert(toLong(-high, -low, ansi = true, try_ = false) == -2)
    assert(toDouble(-high, -low) == -2.0)
  }

  test("totals of wide decimals need more than 38 digits in between only") {
    val random = new Random(2)
    val largest = new BigDecimal(BigInteger.TEN.pow(38).subtract(BigInteger.ONE), 10)
    def total(values: Seq[BigDecimal]): Decimal = {
      def parts(part: (Decimal, Long) => Decimal) = values
        .map(value => part(Decimal(value.abs, 38, 10), value.signum.toLong).toJavaBigDecimal)
        .foldLeft(BigDecimal.ZERO)(_ add _)
      toDecimal(Decimal(parts(highPart), 38, 0), Decimal(parts(lowPart), 38, 0), 10)
    }
    val smallest = new BigDecimal("0.0000000001")
    assert(total(Seq(largest, largest, largest.negate)).toJavaBigDecimal == largest)
    assert(total(Seq(largest, smallest)) == null)
    assert(total(Seq(largest, smallest, smallest.negate)).toJavaBigDecimal == largest)
    assert(total(Seq(largest.negate, smallest.negate)) == null)
    for (_ <- 1 to 5000) {
      val values = Seq.fill(1 + random.nextInt(9)) {
        new BigDecimal(new BigInteger(1 + random.nextInt(124), random.self), 10)
          .multiply(if (random.nextBoolean()) BigDecimal.ONE else BigDecimal.ONE.negate)
      }
      assert(total(values).toJavaBigDecimal == values.reduce(_ add _))
    }
  }

  /** A total as generated code keeps it. */
  private class Total {
    private var sum, error = 0.0
    private var carry, nan, positive, negative = 0L

    def add(value: Double, sign: Long): Unit = {
      val finite = finiteTimes(value, sign)
      carry += sumCarry(sum, finite)
      error += wrappedSumError(sum, finite)
      sum = wrappedSum(sum, finite)
      if (value.isNaN) nan += sign
      if (value == Double.PositiveInfinity) positive += sign
      if (value == Double.NegativeInfinity) negative += sign
    }

    def result: Double = floatingTotal(sum, error, carry, nan, positive, negative)
  }

  test("adding and taking back many doubles leaves less error than plain summing") {
    for (seed <- 1 to 5) {
      val random = new Random(seed)
      val values = Seq.fill(100000)(random.nextGaussian() * math.pow(10, random.nextInt(12)))
      val kept = random.nextGaussian()
      val total = new Total
      var plain = 0.0
      def add(value: Double, sign: Long): Unit = {
        total.add(value, sign)
        plain += value * sign
      }
      add(kept, 1)
      values.foreach(add(_, 1))
      random.shuffle(values).foreach(add(_, -1))
      assert(math.abs(total.result - kept) <= math.abs(plain - kept))
      assert(math.abs(total.result - kept) < 1e-9)
    }
  }

  test("NaN and infinities go when they are taken back") {
    val total = new Total
    total.add(1.5, 1)
    total.add(Double.PositiveInfinity, 1)
    assert(total.result == Double.PositiveInfinity)
    total.add(Double.NegativeInfinity, 1)
    assert(total.result.isNaN)
    total.add(Double.PositiveInfinity, -1)
    assert(total.result == Double.NegativeInfinity)
    total.add(Double.NaN, 1)
    total.add(Double.NegativeInfinity, -1)
    assert(total.result.isNaN)
    total.add(Double.NaN, -1)
    assert(total.result == 1.5)
  }

  test("finite values whose sum is beyond DOUBLE give an infinity, until enough of them go") {
    for (sign <- Seq(1.0, -1.0)) {
      val total = new Total
      val largest = sign * Double.MaxValue
      val small = sign * math.pow(2, 930)
      total.add(small, 1)
      for (_ <- 1 to 3) total.add(largest, 1)
      assert(total.result == sign * Double.PositiveInfinity)
      total.add(largest, -1)
      assert(total.result == sign * Double.PositiveInfinity)
      total.add(largest, -1)
      assert(total.result == largest)
      total.add(largest, -1)
      assert(total.result == small)
      total.add(largest, -1)
      assert(total.result == -largest)
    }
  }

  test("a sum is an infinity where the total is beyond DOUBLE, not where it is so on the way") {
    val random = new Random(3)
    val step = math.ulp(Double.MaxValue)
    for (_ <- 1 to 1000) {
      val values = Seq.fill(2 + random.nextInt(6)) {
        Seq(Double.MaxValue, math.pow(2, 1023), step, 2 * step)(random.nextInt(4)) *
          (if (random.nextBoolean()) 1 else -1)
      }
      val total = new Total
      values.foreach(total.add(_, 1))
      val exact = values.map(new BigDecimal(_)).reduce(_ add _)
      assert(total.result == exact.doubleValue, values.mkString(" + "))
    }
  }
}
