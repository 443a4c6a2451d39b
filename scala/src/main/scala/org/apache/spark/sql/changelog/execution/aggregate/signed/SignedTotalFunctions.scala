// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import java.math.{BigDecimal, BigInteger}

import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.types.Decimal

/** Gives the functions of [[SignedTotalFunctions$]] the static form generated code calls. */
private[aggregate] class SignedTotalFunctions

/** The arithmetic behind [[SignedTotal]] that Spark has no expression for. */
object SignedTotalFunctions {
  private val Base = BigInteger.TEN.pow(18)
  private val QuarterOfCarry = math.pow(2, 1022)

  /**
   * The exact total of the two halves.
   *
   * @throws ArithmeticException
   *   if it is not a `BIGINT` and `ansi` is set
   * @return
   *   null instead, if `try_` is set
   */
  def toLong(high: Long, low: Long, ansi: Boolean, try_ : Boolean): java.lang.Long = {
    val carried = carriedHigh(high, low)
    if (carried == carried.toInt) (carried << 32) | (low & 0xffffffffL)
    else if (try_) null
    else if (ansi) throw QueryExecutionErrors.arithmeticOverflowError("long overflow", "try_sum")
    else (carried << 32) | (low & 0xffffffffL)
  }

  /**
   * The upper half, with what the lower half has beyond 32 bits.
   *
   * Lower halves of rows are not negative, and their total takes up to 64 bits. It is negative only where rows are
   * taken back before they come. One of the two readings at most gives a `BIGINT`.
   */
  private def carriedHigh(high: Long, low: Long): Long = {
    val signed = high + (low >> 32)
    if (signed == signed.toInt) signed else high + (low >>> 32)
  }

  /** The total of the two halves, rounded once. */
  def toDouble(high: Long, low: Long): Double = {
    val carried = carriedHigh(high, low)
    if (carried == carried.toInt) ((carried << 32) | (low & 0xffffffffL)).toDouble
    else carried.toDouble * 4294967296.0 + (low & 0xffffffffL).toDouble
  }

  /** The digits of `value` above the lowest 18, with a sign. */
  def highPart(value: Decimal, sign: Long): Decimal =
    integer(unscaled(value).divide(Base), sign)

  /** The lowest 18 digits of `value`, with a sign. */
  def lowPart(value: Decimal, sign: Long): Decimal =
    integer(unscaled(value).remainder(Base), sign)

  /** The total of both parts, or null if it needs more than 38 digits. */
  def toDecimal(high: Decimal, low: Decimal, scale: Int): Decimal = {
    val total = unscaled(high).multiply(Base).add(unscaled(low))
    val decimal = new BigDecimal(total, scale)
    if (decimal.precision > 38) null else Decimal(decimal, 38, scale)
  }

  /** `value` times `sign` if it is finite, else 0. */
  def finiteTimes(value: Double, sign: Long): Double =
    if (java.lang.Double.isFinite(value)) value * sign else 0.0

  /** `left + right`, less 2^1024 times [[sumCarry]]. */
  def wrappedSum(left: Double, right: Double): Double = {
    val sum = left + right
    if (java.lang.Double.isFinite(sum)) sum
    else 4 * ((left / 4 + right / 4) - math.signum(sum) * QuarterOfCarry)
  }

  /** What [[wrappedSum]] loses to rounding. */
  def wrappedSumError(left: Double, right: Double): Double =
    if (java.lang.Double.isFinite(left + right)) Expansion.sumError(left, right)
    else 4 * Expansion.sumError(left / 4, right / 4)

  /** How often 2^1024 is taken off `left + right` to keep it finite: 0, 1 or -1 times. */
  def sumCarry(left: Double, right: Double): Long = {
    val sum = left + right
    if (java.lang.Double.isFinite(sum)) 0L else if (sum > 0) 1L else -1L
  }

  /** The total of finite values and of the counted others. */
  def floatingTotal(
      sum: Double,
      error: Double,
      carry: Long,
      nan: Long,
      positiveInfinity: Long,
      negativeInfinity: Long): Double =
    if (nan > 0 || (positiveInfinity > 0 && negativeInfinity > 0)) Double.NaN
    else if (positiveInfinity > 0) Double.PositiveInfinity
    else if (negativeInfinity > 0) Double.NegativeInfinity
    else if (carry == 0) sum + error
    else if (math.abs(carry) > 1) carry * Double.PositiveInfinity
    else 4 * Expansion(error / 4, sum / 4, carry * QuarterOfCarry).toDouble

  private def unscaled(value: Decimal): BigInteger = value.toJavaBigDecimal.unscaledValue

  private def integer(value: BigInteger, sign: Long): Decimal =
    Decimal(new BigDecimal(if (sign < 0) value.negate else value), 38, 0)
}
