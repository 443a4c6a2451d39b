// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, Join, JoinHint, LogicalPlan}

/**
 * Joins each left row once, with the right rows that are there after its batch.
 *
 * Stands for a join with a [[LookupTable]] from analysis to rewriting; a plan is never executed with
 * it.
 */
case class LookupJoin(
    joinType: JoinType,
    condition: Option[Expression],
    left: LogicalPlan,
    right: LogicalPlan)
    extends BinaryNode {

  override def output: Seq[Attribute] = ChangelogJoin.output(joinType, left.output, right.output)

  /** The join it is of rows that come in one batch. */
  def toJoin: Join = {
    val join = Join(left, right, joinType, condition, JoinHint.NONE)
    join.copyTagsFrom(this)
    join
  }

  override protected def withNewChildrenInternal(
      newLeft: LogicalPlan,
      newRight: LogicalPlan): LookupJoin = copy(left = newLeft, right = newRight)
}
