// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.inference.DescribeNode

/**
 * An aggregate function whose buffer supports retraction. Each input row adds its value times `sign`, and
 * buffers merge by addition, in any order.
 *
 * Spark's own hash aggregates run these functions, so both phases are generated code.
 */
private[execution] trait SignedFunction extends DeclarativeAggregate {

  /** +1 for a row that accumulates, -1 for a row that retracts. */
  def sign: Expression

  /** The call as written in SQL, such as `sum(fare)`. */
  def name: String

  protected def plus(left: Expression, right: Expression): Expression =
    Add(left, right, EvalMode.LEGACY)

  /** Returns `present` for rows with a value in each of `values`, else `otherwise`. */
  protected def ifPresent(
      values: Seq[Expression],
      present: Expression,
      otherwise: Expression): Expression =
    values.filter(_.nullable).map(IsNotNull(_): Expression).reduceOption(And(_, _)) match {
      case Some(condition) => If(condition, present, otherwise)
      case None => present
    }

  /** Returns a buffer column of the buffer to merge. */
  protected def inputBuffer(column: Attribute): Expression =
    inputAggBufferAttributes(aggBufferAttributes.indexWhere(_.exprId == column.exprId))
}

private[execution] object SignedFunction {

  /** Returns the form of `function` with retraction. */
  def apply(function: AggregateFunction, sign: Expression): SignedFunction = function match {
    case Count(values) => SignedCount(values, sign)
    case sum: Sum => SignedSum(sum.child, sign, sum)
    case average: Average => SignedAverage(average.child, sign, average)
    case extremum @ (_: Min | _: Max) if extremum.dataType == BooleanType =>
      SignedBooleans(extremum.children.head, sign, extremum)
    case bits: BitAggregate => SignedBits(bits.child, sign, bits)
    case SignedMoments.MomentFunction(original, values, _) =>
      SignedMoments(values, sign, original)
    case other =>
      throw SparkException.internalError(s"${other.prettyName} can't take values back")
  }

  /**
   * Returns the form of `function` over insert-only input. Spark's own function over fractions depends on the
   * order of rows, so a rerun of a batch could give another result.
   */
  def inAnyOrder(function: AggregateFunction): AggregateFunction = function match {
    case sum: Sum if isFractional(sum.child) => apply(sum, Literal(1L))
    case average: Average if isFractional(average.child) => apply(average, Literal(1L))
    case SignedMoments.MomentFunction(original, _, _) => apply(original, Literal(1L))
    case other => other
  }

  private def isFractional(value: Expression): Boolean = value.dataType match {
    case FloatType | DoubleType => true
    case _ => false
  }

  /** Returns `function` over `values`, as written in SQL. */
  private[aggregate] def describe(function: Expression, values: Seq[Expression]): String =
    DescribeNode.expression(function.withNewChildren(values))

  /** Returns a call of a static `function` without NULL in arguments and result. */
  private[aggregate] def invoke(
      functions: Class[_],
      dataType: DataType,
      function: String,
      arguments: Expression*): Expression =
    StaticInvoke(functions, dataType, function, arguments, returnNullable = false)
}

/** `min` or `max` of BOOLEAN with retraction: `bool_and`, `bool_or` and similar functions. */
private[aggregate] case class SignedBooleans(
    value: Expression,
    sign: Expression,
    original: AggregateFunction)
    extends SignedFunction {
  private lazy val trues = AttributeReference("true", LongType, nullable = false)()
  private lazy val falses = AttributeReference("false", LongType, nullable = false)()

  override def name: String = SignedFunction.describe(original, Seq(value))

  override def children: Seq[Expression] = Seq(value, sign)

  override def nullable: Boolean = true

  override def dataType: DataType = BooleanType

  override lazy val aggBufferAttributes: Seq[AttributeReference] = Seq(trues, falses)

  override lazy val initialValues: Seq[Expression] = Seq(Literal(0L), Literal(0L))

  override lazy val updateExpressions: Seq[Expression] = Seq(
    ifPresent(Seq(value), If(value, plus(trues, sign), trues), trues),
    ifPresent(Seq(value), If(value, falses, plus(falses, sign)), falses))

  override lazy val mergeExpressions: Seq[Expression] =
    aggBufferAttributes.map(column => plus(column, inputBuffer(column)))

  override lazy val evaluateExpression: Expression = {
    val found = Seq(trues, falses).zip(Seq(Literal(true), Literal(false)))
    val bestFirst = if (original.isInstanceOf[Max]) found else found.reverse
    CaseWhen(bestFirst.map { case (count, result) =>
      GreaterThan(count, Literal(0L)) -> result
    })
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): SignedBooleans =
    copy(value = newChildren(0), sign = newChildren(1))
}
