// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo

import org.apache.spark.sql.changelog.plans.ChangelogJoin

/** Plans a [[ChangelogJoin]]. */
object PlanChangelogJoin {
  def apply(
      join: ChangelogJoin,
      state: StatefulOperatorStateInfo,
      left: SparkPlan,
      right: SparkPlan): SparkPlan =
    ChangelogJoinExec(
      join.joinType,
      JoinSideLayout(0, join.leftSide, join.left.output),
      JoinSideLayout(1, join.rightSide, join.right.output),
      join.matchesNull,
      join.condition,
      join.result,
      Some(state),
      left,
      right)
}
