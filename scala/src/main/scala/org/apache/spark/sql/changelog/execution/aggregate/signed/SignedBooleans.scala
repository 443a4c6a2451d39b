// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate.signed

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.types._

/** `min` or `max` of BOOLEAN that takes rows back: `bool_and`, `bool_or` and their like. */
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
    aggBufferAttributes.map(column => plus(column, arriving(column)))

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
