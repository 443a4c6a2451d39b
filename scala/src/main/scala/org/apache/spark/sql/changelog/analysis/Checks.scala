// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{AGGREGATE, EVENT_TIME_WATERMARK}

import org.apache.spark.sql.changelog.compat.NearestBy
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.inference.{DescribeNode, InferenceErrors}
import org.apache.spark.sql.changelog.plans.{FromChangelog, ToChangelog}

/**
 * Rejects `JOIN ... NEAREST BY` over a stream. Spark identifies left rows by random numbers, so a
 * retraction could not find its row. The check reads the analyzed query, where NEAREST BY is
 * still a join of its own kind.
 */
object CheckNearestBy extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit =
    AnalysisHelper.allowInvokingTransformsInAnalyzer(LowerSources(plan)).foreach {
      case root: ToChangelog if root.streaming =>
        root.child.foreachWithSubqueries {
          case join @ NearestBy() if FromChangelog.streamsIn(join) =>
            throw InferenceErrors.nodeNotSupported(
              join,
              "Spark identifies the rows of the left side by random numbers",
              "Find the nearest rows with JOIN LATERAL (SELECT ... ORDER BY ... LIMIT n).")
          case _ =>
        }
      case _ =>
    }
}

/**
 * Rejects `pivot` without values over a table kept by a stream. Spark runs a separate query for
 * the values, and rejects the query for known streams. `from_changelog` hides the stream from
 * Spark.
 */
object CheckPivot extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit = plan match {
    case Sort(order, true, _, _) if readsStream(plan) && isPivotValuesQuery =>
      throw analysis(
        "CHANGELOG_PIVOT_WITHOUT_VALUES",
        "column" -> DescribeNode.expression(order.head.child))
    case _ =>
  }

  private def readsStream(plan: LogicalPlan): Boolean = plan match {
    case _: ToChangelog => false
    case source: FromChangelog => source.streaming
    case other => other.children.exists(readsStream)
  }

  /** Returns whether Spark collects the values of a pivot. Only the caller tells the query from further queries. */
  private def isPivotValuesQuery: Boolean =
    StackWalker.getInstance.walk[Boolean](_.anyMatch(_.getMethodName == "collectPivotValues"))
}

/**
 * Rejects `first` and `last` over a stream without an order, and without a sequence ([[OrderBySequence]]).
 *
 * Batch Spark uses the order in which rows are read. A stream has no order of rows. The rows of a
 * batch come from many tasks, and a repeated batch reads them differently. A retracted row leaves
 * no trace of its predecessor. A substitute order, such as the order of values, would give a
 * wrong answer to "the latest price".
 *
 * The check reads the analyzed query, where `any_value` is still a different function. For
 * `any_value` every row is correct.
 */
object CheckRowOrder extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit = lowered(plan).foreach {
    case root: ToChangelog if root.streaming =>
      root.child.foreachWithSubqueries(refuse)
    case _ =>
  }

  /** Restores the sources of subqueries, which are beside the subqueries during the check. */
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
          // A value made of grouping columns is equal in all rows of a group.
          if (!value.deterministic || !value.references.subsetOf(columns)) {
            throw InferenceErrors.rowOrderUnknown(plan, function)
          }
        case _ =>
      }
  }
}

/**
 * Computes `first` and `last` over the rows of a single source with `sequence_by` in the order of the sequence: the
 * order in which the rows got their values. Batch Spark computes them in the same way.
 */
object OrderBySequence extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.resolveOperatorsWithPruning(_.containsPattern(AGGREGATE)) {
      case aggregate: Aggregate if aggregate.resolved =>
        sequenceOf(aggregate.child).fold(aggregate)(ordered(aggregate, _))
    }

  private def ordered(aggregate: Aggregate, order: Expression): Aggregate =
    aggregate
      .transformExpressions { case call: AggregateExpression =>
        call.aggregateFunction match {
          case First(value, ignoresNulls) => by(MinBy(value, order), call, value, ignoresNulls)
          case Last(value, ignoresNulls) => by(MaxBy(value, order), call, value, ignoresNulls)
          case _ => call
        }
      }
      .asInstanceOf[Aggregate]

  private def by(
      function: AggregateFunction,
      call: AggregateExpression,
      value: Expression,
      ignoresNulls: Boolean): AggregateExpression = {
    val isCounted = call.filter ++ Option.when(ignoresNulls)(IsNotNull(value))
    call.copy(aggregateFunction = function, filter = isCounted.reduceOption(And(_, _)))
  }

  /** Returns an order of the rows of `plan`, never NULL, if the rows have the columns of one source's sequence. */
  private def sequenceOf(plan: LogicalPlan): Option[Expression] = plan match {
    case _: Project | _: Filter | _: SubqueryAlias | _: View =>
      sequenceOf(plan.children.head).filter(_.references.subsetOf(plan.outputSet))
    case source: FromChangelog if source.sequence.nonEmpty =>
      Option.when(source.sequence.forall(source.outputSet.contains))(
        CreateStruct(source.sequence))
    case _ => None
  }
}

/**
 * Rejects a watermark on a table kept by a stream of changes.
 *
 * Spark silently drops a watermark on a table, in its last batch of analysis rules. This rule
 * runs earlier, among the resolution rules, and changes nothing.
 */
object CheckWatermarks extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (plan.containsPattern(EVENT_TIME_WATERMARK)) {
      plan.foreach {
        case watermark: EventTimeWatermark
            if watermark.resolved && isOverTable(watermark.child) =>
          throw analysis("CHANGELOG_WATERMARK_ON_TABLE", "column" -> watermark.eventTime.name)
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
