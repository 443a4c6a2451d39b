// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.changelog.UpdateKind

/**
 * Groups a changelog and emits each group's change.
 *
 * @param groupingExpressions
 *   as in Spark's `Aggregate`; empty for one row over everything
 * @param aggregateExpressions
 *   the result columns, as in Spark's `Aggregate`
 * @param inputKind
 *   the row kind of `child`, none if it is insert-only
 * @param updateKind
 *   whether the consumer wants before images
 * @param outputKind
 *   the row kind of the result
 * @param operatorId
 *   identifies the operator's state within the query
 */
case class ChangelogAggregate(
    groupingExpressions: Seq[Expression],
    aggregateExpressions: Seq[NamedExpression],
    inputKind: Option[Attribute],
    updateKind: UpdateKind,
    outputKind: Attribute,
    operatorId: Long,
    child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = aggregateExpressions.map(_.toAttribute) :+ outputKind

  override def producedAttributes: AttributeSet = AttributeSet(outputKind)

  override protected def withNewChildInternal(newChild: LogicalPlan): ChangelogAggregate =
    copy(child = newChild)
}
