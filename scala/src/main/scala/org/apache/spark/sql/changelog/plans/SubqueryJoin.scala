// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, Join, JoinHint, LogicalPlan}
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, JoinType}

/**
 * A join that only a subquery gives, between analysis and optimization.
 *
 * Spark refuses an existence or single join in a query that is started as a stream, whether its
 * inputs call themselves tables or not. It does not know this node, which becomes the join as soon
 * as optimization begins.
 */
case class SubqueryJoin(
    joinType: JoinType,
    condition: Option[Expression],
    left: LogicalPlan,
    right: LogicalPlan)
    extends BinaryNode {

  override def output: Seq[Attribute] = ChangelogJoin.output(joinType, left.output, right.output)

  override def producedAttributes: AttributeSet = joinType match {
    case ExistenceJoin(exists) => AttributeSet(exists)
    case _ => AttributeSet.empty
  }

  /** The join this stands for. */
  def toJoin: Join = Join(left, right, joinType, condition, JoinHint.NONE)

  override protected def withNewChildrenInternal(
      newLeft: LogicalPlan,
      newRight: LogicalPlan): SubqueryJoin = copy(left = newLeft, right = newRight)
}
