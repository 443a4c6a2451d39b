// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.temporal

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.plans.ChangelogTemporalJoin

/** Plans a [[ChangelogTemporalJoin]]. */
object PlanChangelogTemporalJoin {
  def apply(
      join: ChangelogTemporalJoin,
      state: StatefulOperatorStateInfo,
      left: SparkPlan,
      right: SparkPlan): SparkPlan = {
    val sides = Seq(join.leftSide -> join.left, join.rightSide -> join.right).zipWithIndex.map {
      case ((side, input), number) =>
        val columns = RowKind.without(side.kind, input.output)
        val ties = if (number == 1) join.matching.ties else Nil
        TemporalSideLayout(number, columns, side, join.matching.isForward, ties)
    }
    ChangelogTemporalJoinExec(
      TemporalJoinLayout(sides(0), sides(1)),
      join.matching,
      join.outputKind,
      Some(state),
      left,
      right)
  }
}
