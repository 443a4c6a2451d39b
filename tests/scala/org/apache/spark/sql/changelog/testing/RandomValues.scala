// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.math.BigDecimal
import java.nio.charset.StandardCharsets.UTF_8
import java.sql.{Date, Timestamp}
import java.time.{Duration, Period}

import scala.util.Random

import org.apache.spark.sql.types._
import org.apache.spark.types.variant.VariantBuilder
import org.apache.spark.unsafe.types.VariantVal

/**
 * Draws values of any type: few different ones, so that rows meet, and many that are easily got
 * wrong. Sums of them are exact in floating point, in any order.
 *
 * @param wraps
 *   whether sums of `BIGINT` may overflow
 * @param small
 *   whether numbers are so small that nothing computed from them overflows
 */
final class RandomValues(random: Random, val wraps: Boolean, small: Boolean = false) {

  /** A few values of a type, for one column. */
  def palette(dataType: DataType): Seq[Any] =
    random.shuffle(all(dataType)).take(3 + random.nextInt(6))

  /** All values of a type that are ever drawn. */
  def all(dataType: DataType): Seq[Any] = dataType match {
    case IntegerType if small => Seq(-1, 0, 1, 2, 3, 5, 40)
    case LongType if small => Seq(-1L, 0L, 1L, 2L, 7L, 1000L)
    case DecimalType.Fixed(38, 10) if small =>
      val most = "9" * 28 + "." + "9" * 10
      Seq(most, s"-$most", "0.0000000001", "0", "1.5", "-2.25")
        .map(new BigDecimal(_).setScale(10))
    case _: DecimalType if small =>
      Seq("-2.25", "0.00", "0.01", "1.50", "10.00", "999.99").map(new BigDecimal(_))
    case TimestampType if small =>
      Seq("00:00", "02:00", "04:30", "07:00", "10:00", "11:00", "15:00", "19:59.999999").map {
        minutes => Timestamp.valueOf(s"2026-01-01 00:$minutes")
      }
    case ArrayType(IntegerType, _) =>
      Seq[Seq[Any]](Nil, Seq(1), Seq(1, 2), Seq(2, 1), Seq(1, 1, 3), Seq(null), Seq(null, 0))
    case ByteType => Seq(-128, -127, -1, 0, 1, 2, 126, 127).map(_.toByte)
    case ShortType => Seq(-32768, -32767, -1, 0, 1, 2, 32767).map(_.toShort)
    case IntegerType => Seq(Int.MinValue, Int.MinValue + 1, -1, 0, 1, 2, 3, Int.MaxValue)
    case LongType => longs
    case decimal: DecimalType => decimals(decimal)
    case FloatType => floatingPoint.map(_.toFloat)
    case DoubleType => floatingPoint
    case StringType => Seq("", "0", "a", "A", "b", "ab", "z", "å", "a-rather-long-text-of-no-use")
    case DateType => Seq("0001-01-01", "1969-12-31", "1970-01-01", "2024-02-29").map(Date.valueOf)
    case TimestampType =>
      Seq("1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2024-02-29 12:00:00.000001")
        .map(Timestamp.valueOf)
    case _: DayTimeIntervalType =>
      Seq(-86400, 0, 1, 86400, 100000).map(s => Duration.ofSeconds(s.toLong))
    case _: YearMonthIntervalType => Seq(-12, 0, 1, 12, 14).map(Period.ofMonths(_).normalized)
    case VariantType =>
      Seq("1", "null", "\"a\"", "[1, null]", "{\"a\": 1, \"b\": \"x\"}").map { json =>
        val variant = VariantBuilder.parseJson(json, false)
        new VariantVal(variant.getValue, variant.getMetadata)
      }
    case text: CharType => Seq("", "a", "A", "b", "ab").map(_.padTo(text.length, ' '))
    case _: VarcharType => Seq("", "a", "A", "b", "ab", "a ")
    case _: StringType => Seq("", "a", "A", "b", "B", "ab", "aB", "AB", "z")
    case BooleanType => Seq(true, false)
    case BinaryType => Seq("", "a", "ab", "b").map(_.getBytes(UTF_8))
    case other => throw new IllegalArgumentException(s"no values of type $other")
  }

  /** Multiples of a power of two, so that `avg`, which sums in floating point, is exact too. */
  private def longs: Seq[Long] = {
    val unit = 1L << 20
    val small = Seq(-3L, -1L, 0L, 1L, 2L, 1000L).map(_ * unit)
    if (wraps) small ++ Seq(Long.MinValue, Long.MinValue + unit, Long.MaxValue - unit + 1)
    else small ++ Seq(-(1L << 40), 1L << 40)
  }

  private def decimals(decimal: DecimalType): Seq[BigDecimal] = {
    // averages of decimals with ten digits after the point need room before it
    val digits = math.min(decimal.precision - decimal.scale, 21)
    val most = s"${"9" * digits}.${"9" * decimal.scale}"
    val least = s"0.${"0" * (decimal.scale - 1)}1"
    Seq(most, s"-$most", least, s"-$least", "0", "1", "1.5", "2", "100").map { text =>
      new BigDecimal(text).setScale(decimal.scale)
    }
  }

  private def floatingPoint: Seq[Double] = Seq(
    Double.NaN,
    Double.PositiveInfinity,
    Double.NegativeInfinity,
    -0.0,
    0.0,
    -1.5,
    0.0625,
    1.0,
    2.25,
    1000.5,
    -1048576.0)
}
