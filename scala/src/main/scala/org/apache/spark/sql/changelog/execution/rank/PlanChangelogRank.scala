// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.rank

import org.apache.spark.sql.catalyst.expressions.{DenseRank, Expression, Rank, RowNumber}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo

import org.apache.spark.sql.changelog.compat.RankLimit
import org.apache.spark.sql.changelog.execution.output.ChangelogDrainExec
import org.apache.spark.sql.changelog.plans.{ChangelogRank, RankFunction, RankStrategy, Ranking}

/** Plans a [[ChangelogRank]]. */
object PlanChangelogRank {

  def apply(
      rank: ChangelogRank,
      state: StatefulOperatorStateInfo,
      child: SparkPlan): SparkPlan = {
    val ranking = rank.ranking
    val isLimit = ranking.partition.isEmpty && ranking.end >= 1 && ranking.end <= Int.MaxValue
    def layout = RankLayout(ranking, rank.columns)
    val rows =
      if (isLimit) limited(layout, child)
      else if (LimitHotPartitionsExec.isOf(ranking)) LimitHotPartitionsExec(layout, child)
      else child
    ChangelogRankExec(ranking, rank.columns, rank.outputKind, Some(state), rows)
  }

  /** Where all rows meet in one task, leaves behind those that can't be shown anyway. */
  private def limited(layout: RankLayout, input: SparkPlan): SparkPlan = {
    import layout.ranking
    val end = ranking.end.toInt
    // limits stop reading early, and operators that keep state must be read to the end
    val child = ChangelogDrainExec(input)
    ranking.strategy match {
      // rows without columns, or with such as can't be compared
      case RankStrategy.FirstCome if layout.rowOrder.isEmpty => input
      case RankStrategy.FirstCome | RankStrategy.AppendFast =>
        val order = ranking.function match {
          case RankFunction.RowNumber => layout.rowOrder
          case _ => ranking.order
        }
        RankLimit(order, function(ranking), end, child)
      case _ => input
    }
  }

  private def function(ranking: Ranking): Expression = {
    val order = ranking.order.map(_.child)
    ranking.function match {
      case RankFunction.RowNumber => RowNumber()
      case RankFunction.RankWithGaps => Rank(order)
      case RankFunction.DenseRank => DenseRank(order)
    }
  }
}
