// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.{
  ColumnarRule,
  ExpandExec,
  FilterExec,
  GenerateExec,
  LocalTableScanExec,
  ProjectExec,
  SortExec,
  SparkPlan,
  UnionExec
}

import org.apache.spark.sql.changelog.execution.output.ChangelogOutputExec

/**
 * Lets the stages of a query that computes changes do, and be sent, no more than a batch needs.
 * {{{
 *   ChangelogJoin                        ChangelogJoin
 *   :- Sort                              :- LazySort
 *   :  +- Exchange                       :  +- StageInput
 *   :     +- Scan                  =>    :     +- Exchange
 *   +- Sort                              :        +- Scan
 *      +- Exchange                       +- NoRows
 *         +- Scan of no rows
 * }}}
 * Runs when exchanges are in place, before code is generated.
 */
object PrepareStages extends ColumnarRule {

  override def postColumnarTransitions: Rule[SparkPlan] = prepare

  private object prepare extends Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan =
      if (!plan.exists(_.isInstanceOf[ChangelogOutputExec])) plan
      else {
        plan.transformUp {
          case shuffle: ShuffleExchangeExec if isEmpty(shuffle.child) => noRows(shuffle)
          case shuffle: ShuffleExchangeLike if !shuffle.supportsColumnar =>
            StageInputExec(shuffle)
          case sort: SortExec if !sort.global =>
            if (sort.child.isInstanceOf[NoRowsExec]) noRows(sort)
            else LazySortExec(sort.sortOrder, sort.child)
        }
      }

    private def noRows(plan: SparkPlan): SparkPlan =
      NoRowsExec(plan.output, plan.outputPartitioning, plan.outputOrdering)

    /** Whether a plan gives no rows, and does nothing that is to be done without any. */
    private def isEmpty(plan: SparkPlan): Boolean = plan match {
      case LocalTableScanExec(_, rows, _) => rows.isEmpty
      case _: NoRowsExec => true
      case aggregate: BaseAggregateExec =>
        aggregate.groupingExpressions.nonEmpty && isEmpty(aggregate.child)
      case _: ProjectExec | _: FilterExec | _: GenerateExec | _: ExpandExec | _: LazySortExec |
          _: UnionExec =>
        plan.children.forall(isEmpty)
      case _ => false
    }
  }
}
