// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.types._

/**
 * A total that can take values back, as columns of an aggregation buffer that merge by addition.
 *
 * What makes a plain `sum` unfit is that adding `x` and later `-x` does not always restore it: a
 * `BIGINT` may overflow in between although the result fits, and `NaN` or an infinity swallows
 * everything. So each type gets columns that cannot lose anything.
 *
 * @param name
 *   prefix of the buffer columns' names
 */
private[aggregate] sealed abstract class SignedTotal(name: String) extends Serializable {

  /** The buffer columns. */
  def columns: Seq[AttributeReference]

  /** The columns of a total of nothing. */
  def zeros: Seq[Expression]

  /** What a non-null `value` adds to each column, times `sign`. */
  def update(value: Expression, sign: Expression): Seq[Expression]

  /** Adds the columns of another total. */
  def merge(left: Attribute => Expression, right: Attribute => Expression): Seq[Expression]

  /** The total, in the type it is summed in. */
  def value: Expression

  protected def column(suffix: String, dataType: DataType): AttributeReference =
    AttributeReference(s"$name$suffix", dataType, nullable = false)()
}

private[aggregate] object SignedTotal {

  /** The columns for values of type `valueType` whose total has type `totalType`. */
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

  /** Values whose total always fits in a wider type that plain addition works on. */
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

  /** `BIGINT` values, summed as two halves so that no order of them overflows. */
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

  /** Decimals so wide that their running total could need more than 38 digits. */
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
   * Floating point values: a compensated sum of the finite ones, and a count of each value that
   * is none. Where the sum leaves the range of doubles, 2^1024 is taken off and counted, so that it
   * comes back when the values go.
   *
   * The compensation is Neumaier's variant of Kahan's summation (A. Neumaier, "Rundungsfehler-
   * analyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54, 1974).
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
