// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.types.{LongType, StringType}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.execution.aggregate.signed.{SignedCount, SignedFunction}
import org.apache.spark.sql.changelog.inference.{AggregateForm, DescribeNode}
import org.apache.spark.sql.changelog.plans.GroupValue

/**
 * The calls of a group aggregate, by what keeps them up to date.
 *
 * @param combined
 *   functions whose buffers a batch's rows are combined in
 * @param rowCount
 *   the buffer among them that counts a group's rows; none over insert-only input
 * @param extremumValues
 *   the arguments of `extrema`
 * @param extrema
 *   `min`, `max`, `min_by` and `max_by` over retracting input
 * @param distinctValues
 *   the arguments of `distinct`, NULL where a FILTER leaves a row out
 * @param distinctShared
 *   for each of `distinctValues` the first whose entries it shares: with its own where rows go;
 *   where they only come, with those of other FILTERs too
 * @param distinct
 *   DISTINCT functions, over the rows of [[ChangelogDistinctExec]]
 * @param sign
 *   the column of those rows that says whether a value appears or disappears
 */
private[aggregate] final case class CallsByForm(
    combined: Seq[AggregateExpression],
    rowCount: Option[Attribute],
    extremumValues: Seq[NamedExpression],
    extrema: Seq[Extremum],
    distinctValues: Seq[NamedExpression],
    distinctShared: Seq[Int],
    distinct: Seq[AggregateExpression],
    sign: Attribute) {

  /** All values that are told apart when a batch's rows are combined, each in a table of its own. */
  def values: Seq[NamedExpression] = extremumValues ++ distinctValues

  /** Whether what some function makes of rows depends on their order. */
  def isOrderSensitive: Boolean =
    combined.exists(_.aggregateFunction match {
      case _: SignedFunction => false
      case function => AggregateForm.seesOrder(function)
    })

  /** The buffers over one row alone; none if a function can't say them in expressions. */
  lazy val buffersOfRow: Option[Seq[NamedExpression]] = {
    val buffers = combined.map(CallsByForm.buffersOfRow)
    if (buffers.forall(_.isDefined)) Some(buffers.flatten.flatten) else None
  }
}

private[aggregate] object CallsByForm {

  def apply(calls: Seq[AggregateExpression], inputKind: Option[Attribute]): CallsByForm = {
    val retracts = inputKind.isDefined
    val (best, buffered) =
      calls.partition(AggregateForm(_, retracts) == AggregateForm.Extremum)
    val (distinct, plain) = buffered.partition(_.isDistinct)

    val bestOf = best.map(call => asBytes(normalized(call, extremumArgument(call))))
    val extremumValues = shared(bestOf)
    val extrema = best.zip(bestOf).map { case (call, value) =>
      val function = call.aggregateFunction
      Extremum(
        extremumValues.indexWhere(_.semanticEquals(value)),
        largest = function.isInstanceOf[Max] || function.isInstanceOf[MaxBy],
        ordersAnother = function.isInstanceOf[MaxMinBy],
        comparedAs = extremumArgument(call).dataType,
        call.resultAttribute)
    }

    val distinctOf = distinct.map(call => normalized(call, distinctArgument(call)))
    val toldApart = shared(distinctOf)
    val distinctValues = toldApart.map(named(_))
    val distinctShared = if (retracts) toldApart.indices else sharing(toldApart)
    val sign = AttributeReference("sign", LongType, nullable = false)()
    val overDistinct = distinct.zip(distinctOf).map { case (call, value) =>
      val column = distinctValues.find(_.children.head.semanticEquals(value)).get.toAttribute
      val function = overValues(call.aggregateFunction, column.withNullability(true))
      val signed =
        if (retracts) takesBack(function, sign) else SignedFunction.inAnyOrder(function)
      call.copy(aggregateFunction = signed, filter = Some(IsNotNull(column)))
    }

    // below the copies made for values, every column a function reads may be NULL
    val readable = if (best.isEmpty && distinct.isEmpty) plain else plain.map(allowNulls)
    val (combined, rowCount) = inputKind match {
      case None =>
        val ordered = readable.map { call =>
          call.copy(aggregateFunction = SignedFunction.inAnyOrder(call.aggregateFunction))
        }
        (ordered, None)
      case Some(kind) =>
        val rowSign = RowKind.signOf(kind)
        val signed = readable.map { call =>
          call.copy(aggregateFunction = takesBack(call.aggregateFunction, rowSign))
        }
        val asked = signed.find(countsRows)
        val count = asked.getOrElse(
          AggregateExpression(SignedCount(Seq(Literal(1)), rowSign), Partial, isDistinct = false))
        (
          if (asked.isDefined) signed else signed :+ count,
          count.aggregateFunction.aggBufferAttributes.headOption)
    }
    CallsByForm(
      combined,
      rowCount,
      extremumValues.map(named(_)),
      extrema,
      distinctValues,
      distinctShared,
      overDistinct,
      sign)
  }

  private def buffersOfRow(call: AggregateExpression): Option[Seq[NamedExpression]] =
    call.aggregateFunction match {
      case function: DeclarativeAggregate =>
        val start = AttributeMap(function.aggBufferAttributes.zip(function.initialValues))
        val updated = function.updateExpressions.map(_.transform {
          case column: AttributeReference => start.getOrElse(column, column)
        })
        val filtered = updated.zip(function.initialValues).map { case (update, initial) =>
          call.filter.fold(update)(If(_, update, initial))
        }
        Some(filtered.zip(function.inputAggBufferAttributes).map { case (buffer, column) =>
          Alias(buffer, column.name)(exprId = column.exprId)
        })
      case _ => None
    }

  /** Whether it is a `count(*)`, which the query's own count of a group's rows can be. */
  private def countsRows(call: AggregateExpression): Boolean = call.aggregateFunction match {
    case SignedCount(values, _) => call.filter.isEmpty && values.forall(isConstant)
    case _ => false
  }

  private def isConstant(value: Expression): Boolean = value match {
    case literal: Literal => literal.value != null
    case _ => false
  }

  private def takesBack(function: AggregateFunction, sign: Expression): AggregateFunction =
    function match {
      case group: GroupValue => group
      case other => SignedFunction(other, sign)
    }

  /** The best of what `call` looks for: a value, or one with what it orders; NULL never is. */
  private def extremumArgument(call: AggregateExpression): Expression =
    call.aggregateFunction match {
      case by: MaxMinBy =>
        val pair = CreateNamedStruct(
          Seq(Literal("order"), by.orderingExpr, Literal("value"), by.valueExpr))
        If(IsNull(by.orderingExpr), Literal(null, pair.dataType), pair)
      case other => other.children.head
    }

  /** Texts that a collation finds equal are different values: they come and go one by one. */
  private def asBytes(value: Expression): Expression =
    if (UnsafeRowUtils.isBinaryStable(value.dataType)) value
    else {
      Cast(value, value.dataType.transformRecursively { case _: StringType => StringType })
    }

  /** The arguments of a DISTINCT call; only the value if NULLs are ignored. */
  private def distinctArgument(call: AggregateExpression): Expression = {
    val inputs = distinctInputs(call.aggregateFunction)
    if (skipsNull(call.aggregateFunction, inputs)) inputs.head else CreateStruct(inputs)
  }

  /** `function` over a column of distinct values. */
  private def overValues(function: AggregateFunction, column: Attribute): AggregateFunction = {
    val inputs = distinctInputs(function)
    def read(child: Expression): Expression = inputs.indexWhere(_.semanticEquals(child)) match {
      case -1 => child
      case _ if skipsNull(function, inputs) => column
      case index => GetStructField(column, index)
    }
    val newChildren = function.children.map {
      case order: SortOrder => order.withNewChildren(order.children.map(read))
      case child => read(child)
    }
    function.withNewChildren(newChildren).asInstanceOf[AggregateFunction]
  }

  private def distinctInputs(function: AggregateFunction): Seq[Expression] =
    shared(
      function.children
        .map {
          case order: SortOrder => order.child
          case child => child
        }
        .filterNot(_.foldable)) match {
      case Nil => function.children.take(1)
      case inputs => inputs
    }

  private def skipsNull(function: AggregateFunction, inputs: Seq[Expression]): Boolean =
    inputs.size == 1 && (function match {
      case _: Count | _: Sum | _: Average => true
      case _ => false
    })

  private def normalized(call: AggregateExpression, argument: Expression): Expression = {
    val value = SparkRules.normalizeFloats(argument)
    call.filter match {
      case Some(condition) => If(condition, value, Literal(null, value.dataType))
      case None => value
    }
  }

  /** For each value the first that is the same wherever neither is left out. */
  private def sharing(values: Seq[Expression]): Seq[Int] = {
    val whole = values.map {
      case If(_, value, Literal(null, _)) => value
      case CaseWhen(Seq((_, value)), None | Some(Literal(null, _))) => value
      case value => value
    }
    values.indices.map { index =>
      val same = whole.indices.filter(other => whole(other).semanticEquals(whole(index)))
      val place = same.indexOf(index)
      // a value that is never the same twice is not even the same as itself
      if (place < 0) index else same(place - place % DistinctLayout.MostShared)
    }
  }

  private def shared(arguments: Seq[Expression]): Seq[Expression] =
    arguments.foldLeft(Seq.empty[Expression]) { (found, next) =>
      if (found.exists(_.semanticEquals(next))) found else found :+ next
    }

  private def named(value: Expression): NamedExpression =
    Alias(value, DescribeNode.expression(value))()

  private def allowNulls(call: AggregateExpression): AggregateExpression = call
    .transform { case column: AttributeReference => column.withNullability(true) }
    .asInstanceOf[AggregateExpression]
}
