// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.analysis.ResolvedInlineTable
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.TimestampType

import org.apache.spark.sql.changelog.inference.InferenceErrors
import org.apache.spark.sql.changelog.plans.{FromChangelog, PassingTime, ToChangelog}

/**
 * Lets what time it is be no constant in a query that is kept up to date.
 *
 * {{{
 *   Filter at < now()     =>   Filter at < PassingTime now()
 *   +- FromChangelog           +- FromChangelog
 * }}}
 *
 * Spark's optimizer would put a constant in its place, in each batch anew, and nobody would notice. So
 * it would with words such as `CAST('today' AS DATE)`, and its parser has with `DATE 'today'`
 * ([[TimeWord]]).
 * Leaves alone what is below `from_changelog`: it is computed once for each change. Runs when
 * everything else is resolved.
 */
object ResolvePassingTime extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(isKept)) plan
    else {
      AnalysisHelper.allowInvokingTransformsInAnalyzer {
        plan.transformDown {
          case root: ToChangelog if root.streaming => root.withNewChildren(Seq(mark(root.child)))
        }
      }
    }

  /** Whether what a query gives depends on the time, but for what its sources make of it. */
  def readsTime(plan: LogicalPlan): Boolean = mark(plan).collectWithSubqueries {
    case node if node.expressions.exists(PassingTime.isIn) => node
  }.nonEmpty

  /** A query as it is when the time is `time`, in ms. */
  def at(plan: LogicalPlan, time: Long): LogicalPlan = {
    val clock = Literal(time * 1000, TimestampType)
    mark(plan).transformAllExpressionsWithSubqueries {
      case time: PassingTime if time.goesOn => time.at(clock)
    }
  }

  private def isKept(plan: LogicalPlan): Boolean = plan match {
    case root: ToChangelog => root.streaming
    case _ => false
  }

  private def mark(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog => source
    case _ =>
      inValues(plan).foreach(time => throw InferenceErrors.passingTime(plan, time))
      plan.mapChildren(mark).transformExpressions {
        case time @ (_: CurrentTimestampLike | _: LocalTimestamp | _: CurrentDate |
            _: CurrentTime) =>
          PassingTime(time)
        case TimeWord(time) => time
        // Spark would make a column of it
        case between: Between if isTimed(between.replacement) => inlined(between.replacement)
        case common: With if common.defs.exists(isTimed) => inlined(common)
        case subquery: SubqueryExpression => subquery.withNewPlan(mark(subquery.plan))
      }
  }

  /** A time in the rows of `VALUES`, which are constants. */
  private def inValues(plan: LogicalPlan): Option[String] = plan match {
    case values: ResolvedInlineTable => values.expressions.find(isTimed).map(_.sql)
    case _ => TimeWord.inValues(plan)
  }

  private def isTimed(expression: Expression): Boolean = expression.exists {
    case _: CurrentTimestampLike | _: LocalTimestamp | _: CurrentDate | _: CurrentTime |
        _: PassingTime =>
      true
    case TimeWord(_) => true
    case _ => false
  }

  private def inlined(expression: Expression): Expression = expression match {
    case With(child, definitions) =>
      val values = definitions.map(value => value.id -> value.child).toMap
      child.transform {
        case reference: CommonExpressionRef if values.contains(reference.id) =>
          values(reference.id)
      }
    case other => other
  }
}
