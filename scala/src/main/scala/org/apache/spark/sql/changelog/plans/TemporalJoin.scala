// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, LogicalPlan}

/**
 * Joins each left row with one right row, the last version at the time of the left row.
 *
 * Stands for a lateral join with the first row in order of time, and for Spark's `AsOfJoin`, from
 * analysis to rewriting; a plan is never executed with it.
 *
 * @param joinType
 *   `Inner`, or `LeftOuter` to keep left rows without a version
 * @param matchesNull
 *   for each part of the join key, whether NULL equals NULL
 * @param isForward
 *   whether the first version after the left row's time is meant instead
 * @param allowsEqual
 *   whether a version at that very time counts
 * @param ties
 *   which of several versions of one time comes first
 * @param condition
 *   what the version found must meet besides, or there is none
 */
case class TemporalJoin(
    joinType: JoinType,
    leftKey: Seq[Expression],
    rightKey: Seq[Expression],
    matchesNull: Seq[Boolean],
    leftTime: Expression,
    rightTime: Expression,
    isForward: Boolean,
    allowsEqual: Boolean,
    ties: Seq[SortOrder],
    condition: Option[Expression],
    left: LogicalPlan,
    right: LogicalPlan)
    extends BinaryNode {

  override def output: Seq[Attribute] = ChangelogJoin.output(joinType, left.output, right.output)

  override protected def withNewChildrenInternal(
      newLeft: LogicalPlan,
      newRight: LogicalPlan): TemporalJoin = copy(left = newLeft, right = newRight)
}
