// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import org.apache.spark.QueryContext
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.inference.DescribeNode

/** `count(values)` with retraction. */
private[aggregate] case class SignedCount(values: Seq[Expression], sign: Expression)
    extends SignedFunction {
  private lazy val count = AttributeReference("count", LongType, nullable = false)()

  override def name: String = DescribeNode.expression(Count(values))

  override def children: Seq[Expression] = values :+ sign

  override def nullable: Boolean = false

  override def dataType: DataType = LongType

  override lazy val aggBufferAttributes: Seq[AttributeReference] = Seq(count)

  override lazy val initialValues: Seq[Expression] = Seq(Literal(0L))

  override lazy val updateExpressions: Seq[Expression] =
    Seq(ifPresent(values, plus(count, sign), count))

  override lazy val mergeExpressions: Seq[Expression] = Seq(plus(count.left, count.right))

  override lazy val evaluateExpression: Expression = count

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): SignedCount =
    copy(values = newChildren.init, sign = newChildren.last)
}

/** `sum(value)` or `avg(value)` with retraction. */
private[aggregate] sealed abstract class SignedTotalFunction
    extends SignedFunction
    with SupportQueryContext {
  def value: Expression

  protected def totalType: DataType

  protected def evalMode: EvalMode.Value

  protected lazy val count: AttributeReference =
    AttributeReference("count", LongType, nullable = false)()

  protected lazy val total: SignedTotal = SignedTotal(value.dataType, totalType, evalMode)

  override def children: Seq[Expression] = Seq(value, sign)

  override def nullable: Boolean = true

  override lazy val aggBufferAttributes: Seq[AttributeReference] = total.columns :+ count

  override lazy val initialValues: Seq[Expression] = total.zeros :+ Literal(0L)

  override lazy val updateExpressions: Seq[Expression] = {
    val updated = total.update(KnownNotNull(value), sign).zip(total.columns)
    updated.map { case (update, column) => ifPresent(Seq(value), update, column) } :+
      ifPresent(Seq(value), plus(count, sign), count)
  }

  override lazy val mergeExpressions: Seq[Expression] = {
    total.merge(identity, inputBuffer) :+ plus(count, inputBuffer(count))
  }

  override lazy val evaluateExpression: Expression =
    If(GreaterThan(count, Literal(0L)), result, Literal(null, dataType))

  /** The function's result over at least one value. */
  protected def result: Expression

  override def initQueryContext(): Option[QueryContext] =
    if (evalMode == EvalMode.ANSI) Some(origin.context) else None
}

private[aggregate] case class SignedSum(value: Expression, sign: Expression, original: Sum)
    extends SignedTotalFunction {

  override def name: String = DescribeNode.expression(original.copy(child = value))

  override def dataType: DataType = original.dataType

  override protected def totalType: DataType = original.dataType

  override protected def evalMode: EvalMode.Value = original.evalContext.evalMode

  override protected def result: Expression = dataType match {
    case decimal: DecimalType =>
      CheckOverflowInSum(total.value, decimal, evalMode != EvalMode.ANSI, getContextOrNull())
    case _ => total.value
  }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): SignedSum =
    copy(value = newChildren(0), sign = newChildren(1))
}

private[aggregate] case class SignedAverage(
    value: Expression,
    sign: Expression,
    original: Average)
    extends SignedTotalFunction {

  override def name: String = DescribeNode.expression(original.copy(child = value))

  override def dataType: DataType = original.dataType

  override protected def totalType: DataType = original.sumDataType

  override protected def evalMode: EvalMode.Value = original.evalMode

  override protected def result: Expression = dataType match {
    case decimal: DecimalType =>
      DecimalDivideWithOverflowCheck(
        total.value,
        Cast(count, DecimalType.LongDecimal),
        decimal,
        getContextOrNull(),
        evalMode != EvalMode.ANSI)
    case _: YearMonthIntervalType => DivideYMInterval(total.value, count)
    case _: DayTimeIntervalType => DivideDTInterval(total.value, count)
    case _ => Divide(total.value, Cast(count, DoubleType), EvalMode.LEGACY)
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): SignedAverage =
    copy(value = newChildren(0), sign = newChildren(1))
}
