// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression, DeclarativeAggregate
}
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.trees.UnaryLike
import org.apache.spark.sql.types.{BooleanType, DataType}

import org.apache.spark.sql.changelog.UpdateKind

/**
 * The parts of an aggregate. The calls are no expressions of the node, because Spark allows
 * aggregate calls only in Spark's nodes.
 *
 * @param grouping
 *   the group columns; empty for one row over everything
 * @param functions
 *   the distinct calls
 * @param results
 *   the result columns, over group columns and results of calls
 */
final case class AggregateCalls(
    grouping: Seq[NamedExpression],
    functions: Seq[AggregateExpression],
    results: Seq[NamedExpression])

object AggregateCalls {
  def apply(aggregate: Aggregate): AggregateCalls = {
    val (grouping, functions, results, _) = PhysicalAggregation.unapply(aggregate).get
    AggregateCalls(grouping, functions, results)
  }
}

/**
 * Groups a changelog and emits each group's change.
 *
 * @param calls
 *   the computed functions and results
 * @param inputKind
 *   the row kind of `child`, or None for an insert-only input
 * @param updateKind
 *   whether the consumer wants before images
 * @param emitsClosed
 *   whether a group is emitted once, after the watermark passes the group
 * @param outputKind
 *   the row kind of the result
 * @param distinctOperatorId
 *   identifies the state of distinct values, if a function is DISTINCT
 */
case class ChangelogAggregate(
    calls: AggregateCalls,
    inputKind: Option[Attribute],
    updateKind: UpdateKind,
    emitsClosed: Boolean,
    outputKind: Attribute,
    operatorId: Long,
    distinctOperatorId: Option[Long],
    child: LogicalPlan)
    extends UnaryNode
    with KeepsState {

  override def output: Seq[Attribute] = calls.results.map(_.toAttribute) :+ outputKind

  override def producedAttributes: AttributeSet = outputSet

  @transient override lazy val references: AttributeSet =
    AttributeSet(calls.grouping ++ calls.functions ++ inputKind)

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogAggregate =
    copy(child = newChild)
}

/**
 * The displayed value of a group whose equal values may differ in bytes, such as texts of a collation. The first value
 * stays until the group disappears, even if its row disappears earlier.
 */
case class GroupValue(child: Expression) extends DeclarativeAggregate with UnaryLike[Expression] {
  private lazy val value = AttributeReference("value", child.dataType)()
  private lazy val isSet = AttributeReference("isSet", BooleanType, nullable = false)()

  override def prettyName: String = "group_value"

  override def nullable: Boolean = child.nullable

  override def dataType: DataType = child.dataType

  override lazy val aggBufferAttributes: Seq[AttributeReference] = Seq(value, isSet)

  override lazy val initialValues: Seq[Expression] =
    Seq(Literal(null, child.dataType), Literal(false))

  override lazy val updateExpressions: Seq[Expression] =
    Seq(If(isSet, value, child), Literal(true))

  override lazy val mergeExpressions: Seq[Expression] =
    Seq(If(isSet.left, value.left, value.right), Or(isSet.left, isSet.right))

  override lazy val evaluateExpression: Expression = value

  override protected def withNewChildInternal(newChild: Expression): GroupValue =
    copy(child = newChild)
}
