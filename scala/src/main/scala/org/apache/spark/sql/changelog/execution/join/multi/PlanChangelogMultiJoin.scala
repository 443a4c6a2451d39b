// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.multi

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo

import org.apache.spark.sql.changelog.execution.join.JoinSideLayout
import org.apache.spark.sql.changelog.plans.{ChangelogJoin, ChangelogMultiJoin}

/** Plans a [[ChangelogMultiJoin]]. */
object PlanChangelogMultiJoin {
  def apply(
      join: ChangelogMultiJoin,
      state: StatefulOperatorStateInfo,
      inputs: Seq[SparkPlan]): SparkPlan =
    ChangelogMultiJoinExec(
      join.children.zipWithIndex.map { case (input, index) =>
        val kind = join.kind(input)
        JoinSideLayout(
          index,
          s"input${index + 1}",
          join.sides(index),
          ChangelogJoin.columns(input.output, kind),
          kind,
          join.keys(index),
          join.rowKeys(index),
          join.replaces(index),
          tracksMatches = false,
          ttl = None)
      },
      join.matchesNull,
      join.conditions,
      join.pairBy,
      join.deletes,
      join.updateKind,
      join.outputKind,
      Some(state),
      inputs)
}
