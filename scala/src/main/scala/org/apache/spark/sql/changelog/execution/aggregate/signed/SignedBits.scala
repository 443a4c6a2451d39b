// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/**
 * `bit_and`, `bit_or` or `bit_xor` with retraction.
 *
 * Each bit of the type has a count of the values in which the bit is set. Two bits share a column, because
 * Spark generates code only for rows of up to 100 columns. `bit_xor` needs no counts, because a second XOR with
 * a value undoes the first.
 */
private[aggregate] case class SignedBits(
    value: Expression,
    sign: Expression,
    original: BitAggregate)
    extends SignedFunction {
  private lazy val half = 4 * dataType.defaultSize

  private lazy val count = AttributeReference("count", LongType, nullable = false)()

  private lazy val words: Seq[AttributeReference] = {
    val names = original match {
      case _: BitXorAgg => Seq("xor")
      case _ => (0 until half).map(bit => s"bits${bit}and${bit + half}")
    }
    names.map(AttributeReference(_, LongType, nullable = false)())
  }

  override def name: String = SignedFunction.describe(original, Seq(value))

  override def children: Seq[Expression] = Seq(value, sign)

  override def nullable: Boolean = true

  override def dataType: DataType = original.dataType

  override lazy val aggBufferAttributes: Seq[AttributeReference] = count +: words

  override lazy val initialValues: Seq[Expression] = aggBufferAttributes.map(_ => Literal(0L))

  override lazy val updateExpressions: Seq[Expression] = {
    val wide = wrap(KnownNotNull(value), LongType)
    val added = words.zipWithIndex.map { case (word, index) =>
      original match {
        case _: BitXorAgg => BitwiseXor(word, wide)
        case _ =>
          plus(word, invoke("countOfTwo", wide, Literal(index), Literal(index + half), sign))
      }
    }
    (plus(count, sign) +: added).zip(aggBufferAttributes).map { case (update, column) =>
      ifPresent(Seq(value), update, column)
    }
  }

  override lazy val mergeExpressions: Seq[Expression] = plus(count, inputBuffer(count)) +:
    words.map { word =>
      original match {
        case _: BitXorAgg => BitwiseXor(word, inputBuffer(word))
        case _ => plus(word, inputBuffer(word))
      }
    }

  override lazy val evaluateExpression: Expression = {
    def bits(function: String, arguments: Expression*) = words.zipWithIndex
      .map { case (word, index) =>
        invoke(function, Seq(word, Literal(index), Literal(index + half)) ++ arguments: _*)
      }
      .reduce(BitwiseOr(_, _): Expression)
    val result = original match {
      case _: BitXorAgg => words.head
      case _: BitOrAgg => bits("bitsOfAny", count)
      case _: BitAndAgg => bits("bitsOfAll", count)
      case other => throw SparkException.internalError(s"no counts for ${other.prettyName}")
    }
    If(GreaterThan(count, Literal(0L)), wrap(result, dataType), Literal(null, dataType))
  }

  /** Converts between integer types, keeping the lowest bits. */
  private def wrap(value: Expression, dataType: DataType): Expression =
    InType(value, dataType)

  private def invoke(function: String, arguments: Expression*): Expression =
    SignedFunction.invoke(classOf[SignedBitFunctions], LongType, function, arguments: _*)

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): SignedBits =
    copy(value = newChildren(0), sign = newChildren(1))
}

/** Gives [[SignedBitFunctions$]] static methods, as called by generated code. */
private[aggregate] class SignedBitFunctions

/**
 * Two counts in a `BIGINT`: the lower 32 bits hold the lower count modulo 2^32, the upper 32 bits hold the
 * upper count. Sums of such pairs are pairs of sums, even if intermediate sums are negative.
 */
object SignedBitFunctions {
  private val MaxRows = (1L << 32) - 1

  /** Returns the change of the counts of two bits by a value. */
  def countOfTwo(value: Long, low: Int, high: Int, sign: Long): Long =
    (((value >>> low) & 1L) | (((value >>> high) & 1L) << 32)) * sign

  /** Returns the given two bits, each set if at least one value has the bit. */
  def bitsOfAny(counts: Long, low: Int, high: Int, rows: Long): Long = {
    checkCountable("bit_or", rows)
    bit(lowCount(counts) != 0, low) | bit(highCount(counts) != 0, high)
  }

  /** Returns the given two bits, each set if every value has the bit. */
  def bitsOfAll(counts: Long, low: Int, high: Int, rows: Long): Long = {
    checkCountable("bit_and", rows)
    bit(lowCount(counts) == rows, low) | bit(highCount(counts) == rows, high)
  }

  private def lowCount(counts: Long): Long = counts & MaxRows

  private def highCount(counts: Long): Long = counts >>> 32

  private def bit(isSet: Boolean, number: Int): Long = if (isSet) 1L << number else 0L

  private def checkCountable(function: String, rows: Long): Unit =
    if (rows > MaxRows)
      throw runtime(
        "CHANGELOG_GROUP_TOO_LARGE",
        "function" -> function,
        "rows" -> rows,
        "most" -> MaxRows)
}
