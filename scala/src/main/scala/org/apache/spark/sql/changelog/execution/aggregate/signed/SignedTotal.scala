// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import java.math.{BigDecimal, BigInteger}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.types._

/**
 * A total with retraction, as columns of an aggregation buffer that merge by addition.
 *
 * A plain `sum` does not support retraction, because adding `x` and then `-x` does not always restore the sum.
 * A `BIGINT` may overflow in between although the result fits, and `NaN` or an infinity absorbs every other
 * value. Therefore each type has columns without loss.
 *
 * @param name
 *   prefix of the buffer columns' names
 */
private[aggregate] sealed abstract class SignedTotal(name: String) extends Serializable {

  /** The buffer columns. */
  def columns: Seq[AttributeReference]

  /** The columns of an empty total. */
  def zeros: Seq[Expression]

  /** Returns the columns after adding `sign` times a non-null `value`. */
  def update(value: Expression, sign: Expression): Seq[Expression]

  /** Returns the columns of the sum of two totals. */
  def merge(left: Attribute => Expression, right: Attribute => Expression): Seq[Expression]

  /** The total, in the type of the sum. */
  def value: Expression

  protected def column(suffix: String, dataType: DataType): AttributeReference =
    AttributeReference(s"$name$suffix", dataType, nullable = false)()
}

private[aggregate] object SignedTotal {

  /** Returns the columns for values of type `valueType` and a total of type `totalType`. */
  def apply(valueType: DataType, totalType: DataType, evalMode: EvalMode.Value): SignedTotal =
    (valueType, totalType) match {
      case (LongType, _) => new ExactTotal("total", totalType, evalMode)
      case (_: IntegralType, LongType) => new PlainTotal("total", LongType)
      case (_: IntegralType, _) => new ExactTotal("total", totalType, evalMode)
      case (DecimalType.Fixed(precision, scale), _) =>
        // 38 digits leave room for 10^10 rows of values with up to 28
        if (precision <= 28) new PlainTotal("total", DecimalType(38, scale))
        else new WideDecimalTotal("total", scale)
      case (FloatType | DoubleType, _) => new CompensatedTotal("total")
      case _ => new PlainTotal("total", totalType)
    }

  /** The total of values that always fit into a wider type with plain addition. */
  private class PlainTotal(name: String, dataType: DataType) extends SignedTotal(name) {
    private val total = column("", dataType)

    override val columns: Seq[AttributeReference] = Seq(total)

    override def zeros: Seq[Expression] = Seq(Literal.default(dataType))

    override def update(value: Expression, sign: Expression): Seq[Expression] = {
      val wide = InType(value, dataType)
      Seq(add(total, If(EqualTo(sign, Literal(1L)), wide, UnaryMinus(wide, failOnError = false))))
    }

    override def merge(
        left: Attribute => Expression,
        right: Attribute => Expression): Seq[Expression] = Seq(add(left(total), right(total)))

    override def value: Expression = total

    private def add(left: Expression, right: Expression): Expression = dataType match {
      case decimal: DecimalType => DecimalAddNoOverflowCheck(left, right, decimal)
      case LongType => Add(left, right, EvalMode.LEGACY)
      case _ => Add(left, right, EvalMode.ANSI)
    }
  }

  /** The total of `BIGINT` values, summed as two halves, so that no order of values overflows. */
  private class ExactTotal(name: String, totalType: DataType, evalMode: EvalMode.Value)
      extends SignedTotal(name) {
    private val high = column("High", LongType)
    private val low = column("Low", LongType)

    override val columns: Seq[AttributeReference] = Seq(high, low)

    override def zeros: Seq[Expression] = Seq(Literal(0L), Literal(0L))

    override def update(value: Expression, sign: Expression): Seq[Expression] = {
      val wide = InType(value, LongType)
      Seq(
        plus(high, times(ShiftRight(wide, Literal(32)), sign)),
        plus(low, times(BitwiseAnd(wide, Literal(0xffffffffL)), sign)))
    }

    override def merge(
        left: Attribute => Expression,
        right: Attribute => Expression): Seq[Expression] =
      Seq(plus(left(high), right(high)), plus(left(low), right(low)))

    override def value: Expression = totalType match {
      case LongType =>
        val ansi = Literal(evalMode == EvalMode.ANSI)
        static(LongType, "toLong", high, low, ansi, Literal(evalMode == EvalMode.TRY))
      case _ => static(DoubleType, "toDouble", high, low)
    }

    private def plus(left: Expression, right: Expression) = Add(left, right, EvalMode.LEGACY)

    private def times(left: Expression, right: Expression) =
      Multiply(left, right, EvalMode.LEGACY)
  }

  /** The total of decimals so wide that the sum could need more than 38 digits. */
  private class WideDecimalTotal(name: String, scale: Int) extends SignedTotal(name) {
    private val part = DecimalType(38, 0)
    private val high = column("High", part)
    private val low = column("Low", part)

    override val columns: Seq[AttributeReference] = Seq(high, low)

    override def zeros: Seq[Expression] = Seq(Literal.default(part), Literal.default(part))

    override def update(value: Expression, sign: Expression): Seq[Expression] = Seq(
      plus(high, static(part, "highPart", value, sign)),
      plus(low, static(part, "lowPart", value, sign)))

    override def merge(
        left: Attribute => Expression,
        right: Attribute => Expression): Seq[Expression] =
      Seq(plus(left(high), right(high)), plus(left(low), right(low)))

    override def value: Expression =
      static(DecimalType(38, scale), "toDecimal", high, low, Literal(scale))

    private def plus(left: Expression, right: Expression) =
      DecimalAddNoOverflowCheck(left, right, part)
  }

  /**
   * The total of floating point values: a compensated sum of finite values, and a count each of NaN and both
   * infinities. If the sum leaves the range of doubles, 2^1024 is subtracted and counted, and added again when
   * values are retracted.
   *
   * The compensation is Neumaier's variant of Kahan's summation (A. Neumaier, "Rundungsfehleranalyse einiger
   * Verfahren zur Summation endlicher Summen", ZAMM 54, 1974).
   */
  private class CompensatedTotal(name: String) extends SignedTotal(name) {
    private val sum = column("", DoubleType)
    private val error = column("Error", DoubleType)
    private val carry = column("Carry", LongType)
    private val nan = column("NaN", LongType)
    private val positive = column("PositiveInfinity", LongType)
    private val negative = column("NegativeInfinity", LongType)
    private val special = Seq(
      nan -> Double.NaN,
      positive -> Double.PositiveInfinity,
      negative -> Double.NegativeInfinity)

    override val columns: Seq[AttributeReference] =
      Seq(sum, error, carry, nan, positive, negative)

    override def zeros: Seq[Expression] =
      Seq(Literal(0.0), Literal(0.0), Literal(0L), Literal(0L), Literal(0L), Literal(0L))

    override def update(value: Expression, sign: Expression): Seq[Expression] = {
      val wide = InType(value, DoubleType)
      val finite = static(DoubleType, "finiteTimes", wide, sign)
      add(sum, error, carry, finite) ++
        special.map { case (count, number) =>
          val isNumber = EqualTo(wide, Literal(number))
          Add(count, If(isNumber, sign, Literal(0L)), EvalMode.LEGACY)
        }
    }

    override def merge(
        left: Attribute => Expression,
        right: Attribute => Expression): Seq[Expression] = {
      val errors = plus(left(error), right(error))
      val carries = plus(left(carry), right(carry))
      add(left(sum), errors, carries, right(sum)) ++
        special.map { case (count, _) => Add(left(count), right(count), EvalMode.LEGACY) }
    }

    override def value: Expression =
      static(DoubleType, "floatingTotal", sum, error, carry, nan, positive, negative)

    private def add(
        sum: Expression,
        error: Expression,
        carry: Expression,
        value: Expression): Seq[Expression] = Seq(
      static(DoubleType, "wrappedSum", sum, value),
      plus(error, static(DoubleType, "wrappedSumError", sum, value)),
      plus(carry, static(LongType, "sumCarry", sum, value)))

    private def plus(left: Expression, right: Expression) = Add(left, right, EvalMode.LEGACY)
  }

  private def static(dataType: DataType, function: String, arguments: Expression*): Expression =
    StaticInvoke(
      classOf[SignedTotalFunctions],
      dataType,
      function,
      arguments,
      returnNullable = function == "toLong" || function == "toDecimal")
}

/**
 * Casts a value, unless it already has the type.
 *
 * Spark's optimizer removes casts to the same type, and generated code relies on the removal. If an aggregate
 * computes such a cast several times, subexpression elimination computes the cast once, but generates the code
 * of its input in each place. If Spark then splits that code into functions, the functions lack the columns of
 * the input.
 */
private[aggregate] object InType {
  def apply(value: Expression, dataType: DataType): Expression =
    if (DataType.equalsStructurally(value.dataType, dataType)) value
    else Cast(value, dataType, None, EvalMode.LEGACY)
}

/** Gives [[SignedTotalFunctions$]] static methods, as called by generated code. */
private[aggregate] class SignedTotalFunctions

/** The arithmetic of [[SignedTotal]] without an equivalent Spark expression. */
object SignedTotalFunctions {
  private val Base = BigInteger.TEN.pow(18)
  private val QuarterOfCarry = math.pow(2, 1022)

  /**
   * Returns the exact total of the two halves.
   *
   * @throws ArithmeticException
   *   if the total exceeds `BIGINT` and `ansi` is set
   * @return
   *   null if the total exceeds `BIGINT` and `try_` is set
   */
  def toLong(high: Long, low: Long, ansi: Boolean, try_ : Boolean): java.lang.Long = {
    val carried = highWithCarry(high, low)
    if (carried == carried.toInt) (carried << 32) | (low & 0xffffffffL)
    else if (try_) null
    else if (ansi) throw QueryExecutionErrors.arithmeticOverflowError("long overflow", "try_sum")
    else (carried << 32) | (low & 0xffffffffL)
  }

  /**
   * Returns the upper half, plus the part of the lower half beyond 32 bits.
   *
   * Lower halves of rows are not negative, and their total takes up to 64 bits. A negative total is only
   * possible while unmatched retractions exist. At most one of the signed and the unsigned reading gives a
   * `BIGINT`.
   */
  private def highWithCarry(high: Long, low: Long): Long = {
    val signed = high + (low >> 32)
    if (signed == signed.toInt) signed else high + (low >>> 32)
  }

  /** Returns the total of the two halves, rounded once. */
  def toDouble(high: Long, low: Long): Double = {
    val carried = highWithCarry(high, low)
    if (carried == carried.toInt) ((carried << 32) | (low & 0xffffffffL)).toDouble
    else carried.toDouble * 4294967296.0 + (low & 0xffffffffL).toDouble
  }

  /** Returns the digits of `value` above the lowest 18, with a sign. */
  def highPart(value: Decimal, sign: Long): Decimal =
    integer(unscaled(value).divide(Base), sign)

  /** Returns the lowest 18 digits of `value`, with a sign. */
  def lowPart(value: Decimal, sign: Long): Decimal =
    integer(unscaled(value).remainder(Base), sign)

  /** Returns the total of both parts, or null if the total needs more than 38 digits. */
  def toDecimal(high: Decimal, low: Decimal, scale: Int): Decimal = {
    val total = unscaled(high).multiply(Base).add(unscaled(low))
    val decimal = new BigDecimal(total, scale)
    if (decimal.precision > 38) null else Decimal(decimal, 38, scale)
  }

  /** Returns `value` times `sign` for a finite value, else 0. */
  def finiteTimes(value: Double, sign: Long): Double =
    if (java.lang.Double.isFinite(value)) value * sign else 0.0

  /** Returns `left + right` minus 2^1024 times [[sumCarry]]. */
  def wrappedSum(left: Double, right: Double): Double = {
    val sum = left + right
    if (java.lang.Double.isFinite(sum)) sum
    else 4 * ((left / 4 + right / 4) - math.signum(sum) * QuarterOfCarry)
  }

  /** Returns the rounding error of [[wrappedSum]]. */
  def wrappedSumError(left: Double, right: Double): Double =
    if (java.lang.Double.isFinite(left + right)) Expansion.sumError(left, right)
    else 4 * Expansion.sumError(left / 4, right / 4)

  /** Returns how often 2^1024 is subtracted from `left + right` to keep the sum finite: 0, 1 or -1 times. */
  def sumCarry(left: Double, right: Double): Long = {
    val sum = left + right
    if (java.lang.Double.isFinite(sum)) 0L else if (sum > 0) 1L else -1L
  }

  /** Returns the total of finite values and of counted infinities and NaN. */
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
