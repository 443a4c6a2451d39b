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
 * The function calls of a group aggregate, by the way each is maintained.
 *
 * @param combined
 *   functions with buffers, in which a batch's rows are combined
 * @param rowCount
 *   the buffer with a group's number of rows; empty over insert-only input
 * @param extremumValues
 *   the arguments of `extrema`
 * @param extrema
 *   `min`, `max`, `min_by` and `max_by` over retracting input
 * @param distinctValues
 *   the arguments of `distinct`, NULL if a FILTER excludes the row
 * @param distinctShared
 *   for each kind of `distinctValues`, the first kind with the same state entries. Over retracting input each
 *   kind has its own entries. Over insert-only input, kinds that differ only in their FILTER share entries
 * @param distinct
 *   DISTINCT functions, over the rows of [[ChangelogDistinctExec]]
 * @param sign
 *   the sign column of those rows: whether a value appears or disappears
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

  /** The values to combine a batch's rows by, in addition to the group. Each has its own table. */
  def values: Seq[NamedExpression] = extremumValues ++ distinctValues

  /** Whether the result of a function depends on the order of rows. */
  def isOrderSensitive: Boolean =
    combined.exists(_.aggregateFunction match {
      case _: SignedFunction => false
      case function => AggregateForm.dependsOnOrder(function)
    })

  /** The buffers over a single row; empty if a function's buffers are not expressions. */
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
    val distinctKinds = shared(distinctOf)
    val distinctValues = distinctKinds.map(named(_))
    val distinctShared = if (retracts) distinctKinds.indices else sharing(distinctKinds)
    val sign = AttributeReference("sign", LongType, nullable = false)()
    val overDistinct = distinct.zip(distinctOf).map { case (call, value) =>
      val column = distinctValues.find(_.children.head.semanticEquals(value)).get.toAttribute
      val function = overValues(call.aggregateFunction, column.withNullability(true))
      val signed =
        if (retracts) withRetractions(function, sign) else SignedFunction.inAnyOrder(function)
      call.copy(aggregateFunction = signed, filter = Some(IsNotNull(column)))
    }

    // the copies made for values have NULL in every column that a function reads
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
          call.copy(aggregateFunction = withRetractions(call.aggregateFunction, rowSign))
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

  /** Returns whether a call is a `count(*)`, which can also serve as the count of a group's rows. */
  private def countsRows(call: AggregateExpression): Boolean = call.aggregateFunction match {
    case SignedCount(values, _) => call.filter.isEmpty && values.forall(isConstant)
    case _ => false
  }

  private def isConstant(value: Expression): Boolean = value match {
    case literal: Literal => literal.value != null
    case _ => false
  }

  private def withRetractions(function: AggregateFunction, sign: Expression): AggregateFunction =
    function match {
      case group: GroupValue => group
      case other => SignedFunction(other, sign)
    }

  /**
   * Returns the compared argument of `call`: a value, or the pair of an order and a value. NULL is never the
   * result.
   */
  private def extremumArgument(call: AggregateExpression): Expression =
    call.aggregateFunction match {
      case by: MaxMinBy =>
        val pair = CreateNamedStruct(
          Seq(Literal("order"), by.orderingExpr, Literal("value"), by.valueExpr))
        If(IsNull(by.orderingExpr), Literal(null, pair.dataType), pair)
      case other => other.children.head
    }

  /**
   * Removes a collation, because each text is inserted and retracted by its bytes, even if a collation finds
   * texts equal.
   */
  private def asBytes(value: Expression): Expression =
    if (UnsafeRowUtils.isBinaryStable(value.dataType)) value
    else {
      Cast(value, value.dataType.transformRecursively { case _: StringType => StringType })
    }

  /**
   * Returns the arguments of a DISTINCT call as one value: the bare argument if the function ignores NULL, else
   * a struct.
   */
  private def distinctArgument(call: AggregateExpression): Expression = {
    val inputs = distinctInputs(call.aggregateFunction)
    if (skipsNull(call.aggregateFunction, inputs)) inputs.head else CreateStruct(inputs)
  }

  /** Returns `function` over a column of distinct values. */
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

  /** Returns for each value the index of the first value that is equal apart from FILTERs. */
  private def sharing(values: Seq[Expression]): Seq[Int] = {
    val whole = values.map {
      case If(_, value, Literal(null, _)) => value
      case CaseWhen(Seq((_, value)), None | Some(Literal(null, _))) => value
      case value => value
    }
    values.indices.map { index =>
      val same = whole.indices.filter(other => whole(other).semanticEquals(whole(index)))
      val place = same.indexOf(index)
      // a nondeterministic value is not semantically equal to itself
      if (place < 0) index else same(place - place % DistinctLayout.MaxShared)
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
