// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.multi

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.execution.join.JoinSideLayout
import org.apache.spark.sql.changelog.plans.ChangelogMultiJoin

/** Plans a [[ChangelogMultiJoin]]. */
object PlanChangelogMultiJoin {
  def apply(
      join: ChangelogMultiJoin,
      state: StatefulOperatorStateInfo,
      inputs: Seq[SparkPlan]): SparkPlan = {
    val sides = join.sides.zip(join.children).zipWithIndex.map { case ((side, input), number) =>
      val columns = RowKind.without(side.kind, input.output)
      JoinSideLayout(number, s"input${number + 1}", columns, side)
    }
    ChangelogMultiJoinExec(
      sides,
      join.matchesNull,
      join.conditions,
      join.result,
      Some(state),
      inputs)
  }
}
