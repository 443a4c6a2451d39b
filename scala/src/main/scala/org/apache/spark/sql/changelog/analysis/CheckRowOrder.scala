// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, First, Last}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  AnalysisHelper,
  LogicalPlan,
  Window
}

import org.apache.spark.sql.changelog.inference.InferenceErrors
import org.apache.spark.sql.changelog.plans.{FromChangelog, ToChangelog}

/**
 * Refuses `first` and `last` over a stream where nothing says what comes first.
 *
 * Batch Spark takes rows in the order in which it reads them. A stream has no such order: rows of a
 * batch come from many tasks, a batch that is run again reads them otherwise, and a row that is taken
 * back leaves no trace of what came before it. Any order that was chosen instead, such as that of
 * the values, would look like an answer to "the latest price" and be none.
 *
 * Looks at the analyzed query: there `any_value`, where every row will do, is still another function.
 */
object CheckRowOrder extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit = lowered(plan).foreach {
    case root: ToChangelog if root.streaming =>
      root.child.foreachWithSubqueries(refuse)
    case _ =>
  }

  /** What subqueries read is beside them when a plan is checked. */
  private def lowered(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer(LowerSources(plan))

  private def refuse(plan: LogicalPlan): Unit = plan match {
    case aggregate: Aggregate if FromChangelog.streamsIn(aggregate) =>
      check(aggregate, aggregate.aggregateExpressions, aggregate.groupingExpressions)
    case window: Window if window.orderSpec.isEmpty && FromChangelog.streamsIn(window) =>
      check(window, window.windowExpressions, window.partitionSpec)
    case _ =>
  }

  private def check(
      plan: LogicalPlan,
      results: Seq[Expression],
      groups: Seq[Expression]): Unit = {
    val columns = AttributeSet(groups.collect { case column: Attribute => column })
    results
      .flatMap(_.collect { case call: AggregateExpression => call.aggregateFunction })
      .foreach {
        case function @ (_: First | _: Last) =>
          val value = function.children.head
          // in all rows of a group the same
          if (!value.deterministic || !value.references.subsetOf(columns)) {
            throw InferenceErrors.rowOrderUnknown(plan, function)
          }
        case _ =>
      }
  }
}
