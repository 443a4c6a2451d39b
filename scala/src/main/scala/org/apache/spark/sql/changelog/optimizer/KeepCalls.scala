// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression, AggregateFunction
}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference, Expression, Literal, PythonUDF
}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Subquery}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Hides DISTINCT aggregates and Python functions in subqueries over changing tables from Spark's
 * optimizer.
 *
 * {{{
 *   count(DISTINCT a), count(DISTINCT b)   =>   count(DistinctValues(a)), count(DistinctValues(b))
 *   plus(a) > 1                            =>   PythonCall(plus, a) > 1
 * }}}
 *
 * Spark fully optimizes a subquery before the outer query. In its last phase, Spark combines
 * several DISTINCT aggregates into one, and moves Python functions into a node. Both rewrites are
 * only valid for static data. The other rules of that phase are valid for changing rows.
 */
private[optimizer] object KeepCalls {

  /**
   * Replaces the calls of a subquery over a stream with placeholders, before the last phase of
   * Spark's optimizer.
   */
  def hide(subquery: Subquery): Subquery =
    if (!FromChangelog.streamsIn(subquery)) subquery
    else {
      val hidden = subquery.transformUp { case node =>
        node.transformExpressionsUp {
          case call: AggregateExpression if call.isDistinct =>
            call.copy(
              aggregateFunction = DistinctValues(call.aggregateFunction),
              isDistinct = false)
          case call: PythonUDF if PythonUDF.isScalarPythonUDF(call) =>
            PythonCall(call, call.children)
        }
      }
      hidden.asInstanceOf[Subquery]
    }
}

/** Restores the original calls, once the subqueries are part of the query. */
private[optimizer] object ShowCalls extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformAllExpressionsWithSubqueries {
      case call @ AggregateExpression(DistinctValues(function), _, _, _, _) =>
        call.copy(aggregateFunction = function, isDistinct = true)
      case PythonCall(function, arguments) => function.withNewChildren(arguments)
    }
}

/** HiddenCall: a placeholder call, unknown to Spark and never evaluated. */
private sealed trait HiddenCall extends CodegenFallback { this: Expression =>
  override def eval(input: InternalRow): Any =
    throw SparkException.internalError(s"$this is never computed")
}

/** A DISTINCT aggregate. */
private case class DistinctValues(function: AggregateFunction)
    extends AggregateFunction
    with HiddenCall {

  override def children: Seq[Expression] = Seq(function)
  override def dataType: DataType = function.dataType
  override def nullable: Boolean = function.nullable
  override def defaultResult: Option[Literal] = function.defaultResult
  override def aggBufferSchema: StructType = function.aggBufferSchema
  override def aggBufferAttributes: Seq[AttributeReference] = function.aggBufferAttributes
  override def inputAggBufferAttributes: Seq[AttributeReference] =
    function.inputAggBufferAttributes

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): DistinctValues =
    copy(function = newChildren.head.asInstanceOf[AggregateFunction])
}

/** A scalar Python function. */
private case class PythonCall(function: PythonUDF, override val children: Seq[Expression])
    extends Expression
    with HiddenCall {

  override def dataType: DataType = function.dataType
  override def nullable: Boolean = function.nullable
  override lazy val deterministic: Boolean =
    function.udfDeterministic && children.forall(_.deterministic)

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): PythonCall = copy(children = newChildren)
}
