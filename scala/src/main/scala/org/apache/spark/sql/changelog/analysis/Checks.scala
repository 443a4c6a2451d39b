// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, First, Last}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  AnalysisHelper,
  EventTimeWatermark,
  LogicalPlan,
  Sort,
  Window
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.EVENT_TIME_WATERMARK

import org.apache.spark.sql.changelog.compat.NearestBy
import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.inference.{DescribeNode, InferenceErrors}
import org.apache.spark.sql.changelog.plans.{FromChangelog, ToChangelog}

/**
 * Refuses `JOIN ... NEAREST BY` over a stream: Spark gives each left row a random number to tell it
 * from others, and could not find it again when it is taken back. Looks at the analyzed query, in
 * which it still is a join of its own.
 */
object CheckNearestBy extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit =
    AnalysisHelper.allowInvokingTransformsInAnalyzer(LowerSources(plan)).foreach {
      case root: ToChangelog if root.streaming =>
        root.child.foreachWithSubqueries {
          case join @ NearestBy() if FromChangelog.streamsIn(join) =>
            throw InferenceErrors.nodeNotSupported(
              join,
              "Spark tells the rows of its left side apart by random numbers",
              "Join with the nearest rows of each by JOIN LATERAL (SELECT ... ORDER BY ... LIMIT n).")
          case _ =>
        }
      case _ =>
    }
}

/**
 * Refuses `pivot` without values over a table that a stream keeps. Spark runs a query of its own to
 * find them, which it refuses for streams it knows of, and the table hides its stream from it.
 */
object CheckPivot extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit = plan match {
    case Sort(order, true, _, _) if readsStream(plan) && looksForValues =>
      throw InferenceErrors.pivotWithoutValues(DescribeNode.expression(order.head.child))
    case _ =>
  }

  private def readsStream(plan: LogicalPlan): Boolean = plan match {
    case _: ToChangelog => false
    case source: FromChangelog => source.streaming
    case other => other.children.exists(readsStream)
  }

  /** The query itself looks like any other. */
  private def looksForValues: Boolean =
    StackWalker.getInstance.walk[Boolean](_.anyMatch(_.getMethodName == "collectPivotValues"))
}

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

/**
 * Refuses a watermark on a table that is kept by a stream of changes.
 *
 * Spark gives watermarks to streams, and takes one on a table away without a word, in its last
 * batch of analysis rules. This rule runs before that, among the resolution rules. It changes
 * nothing.
 */
object CheckWatermarks extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (plan.containsPattern(EVENT_TIME_WATERMARK)) {
      plan.foreach {
        case watermark: EventTimeWatermark
            if watermark.resolved && isOverTable(watermark.child) =>
          throw ChangelogErrors.watermarkOnTable(watermark.eventTime.name)
        case _ =>
      }
    }
    plan
  }

  private def isOverTable(plan: LogicalPlan): Boolean = plan match {
    case source: FromChangelog => source.child.isStreaming
    case _: ToChangelog => false
    case other => other.children.exists(isOverTable)
  }
}
