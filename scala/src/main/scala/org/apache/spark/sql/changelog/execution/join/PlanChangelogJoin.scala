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
      JoinSideLayout(
        0,
        JoinLayout.Names(0),
        join.leftSide,
        ChangelogJoin.columns(join.left.output, join.leftKind),
        join.leftKind,
        join.leftKey,
        join.leftRowKey,
        join.leftReplaces,
        join.leftTracksMatches,
        join.leftTtl),
      JoinSideLayout(
        1,
        JoinLayout.Names(1),
        join.rightSide,
        ChangelogJoin.columns(join.right.output, join.rightKind),
        join.rightKind,
        join.rightKey,
        join.rightRowKey,
        join.rightReplaces,
        join.rightTracksMatches,
        join.rightTtl),
      join.matchesNull,
      join.condition,
      join.pairBy,
      join.deletes,
      join.updateKind,
      join.outputKind,
      // Spark expects every partition it knows of to commit
      Some(if (join.leftKey.isEmpty) state.copy(numPartitions = 1) else state),
      left,
      right)
}
