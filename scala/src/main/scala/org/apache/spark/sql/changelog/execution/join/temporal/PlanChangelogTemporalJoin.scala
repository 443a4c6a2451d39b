// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo

import org.apache.spark.sql.changelog.plans.{ChangelogJoin, ChangelogTemporalJoin}

/** Plans a [[ChangelogTemporalJoin]]. */
object PlanChangelogTemporalJoin {
  def apply(
      join: ChangelogTemporalJoin,
      state: StatefulOperatorStateInfo,
      left: SparkPlan,
      right: SparkPlan): SparkPlan =
    ChangelogTemporalJoinExec(
      join.joinType,
      TemporalJoinLayout(
        TemporalSideLayout(
          0,
          ChangelogJoin.columns(join.left.output, join.leftKind),
          join.leftKind,
          join.leftKey,
          join.leftTime,
          join.isForward,
          Nil,
          join.leftTtl),
        TemporalSideLayout(
          1,
          ChangelogJoin.columns(join.right.output, join.rightKind),
          join.rightKind,
          join.rightKey,
          join.rightTime,
          join.isForward,
          join.ties,
          join.rightTtl)),
      join.matchesNull,
      join.allowsEqual,
      join.condition,
      join.isTimed,
      join.appends,
      join.outputKind,
      // Spark expects every partition it knows of to commit
      Some(if (join.leftKey.isEmpty) state.copy(numPartitions = 1) else state),
      left,
      right)
}
