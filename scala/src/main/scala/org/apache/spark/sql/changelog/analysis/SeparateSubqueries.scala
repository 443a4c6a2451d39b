// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  ExprId,
  LateralSubquery,
  SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{FromChangelog, RenameColumns}

/**
 * Gives a source other columns in a correlated subquery than it has around it.
 * {{{
 *   Project [scalar-subquery [d#1 = outer(c#2)]]     Project [scalar-subquery [d#3 = outer(c#2)]]
 *   :  +- FromChangelog [d#1]                        :  +- Project [d#1 AS d#3]
 *   :                                          =>    :     +- FromChangelog [d#1]
 *   +- Project [d#1 AS c#2]                          +- Project [d#1 AS c#2]
 *      +- FromChangelog [d#1]                           +- FromChangelog [d#1]
 * }}}
 * Spark does so for what it takes for a table. Without it, `c` is `d` once redundant aliases are gone,
 * and the subquery compares `d` with itself.
 */
private[analysis] object SeparateSubqueries extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      separate(plan, Set.empty)
    }

  /** Two subqueries side by side stay the same if they are: one may be in GROUP BY, and one in SELECT. */
  private def separate(plan: LogicalPlan, around: Set[ExprId]): LogicalPlan = {
    val taken = around ++ sources(plan).flatMap(_.output).map(_.exprId)
    plan.transformAllExpressions { case subquery: SubqueryExpression =>
      val own = if (subquery.isCorrelated) withOwnColumns(subquery, taken) else subquery.plan
      subquery.withNewPlan(separate(own, taken))
    }
  }

  private def withOwnColumns(subquery: SubqueryExpression, taken: Set[ExprId]): LogicalPlan = {
    val plan = subquery.plan
    val again = sources(plan).filter(_.output.exists(column => taken.contains(column.exprId)))
    val separated = plan.transformUpWithNewOutput {
      case source: FromChangelog if again.exists(_ eq source) =>
        val columns = source.output.map(_.newInstance())
        ReadSourcesOnce.readAs(source, columns) -> source.output.zip(columns)
    }
    subquery match {
      case _: LateralSubquery => named(separated, plan.output)
      case _ => separated
    }
  }

  /** The sources whose columns are read as they are. */
  private def sources(plan: LogicalPlan): Seq[FromChangelog] = {
    val renamed = plan.collect {
      case Project(columns, source: FromChangelog) if columns.exists(ReadSourcesOnce.isMarked) =>
        source
    }
    plan.collect {
      case source: FromChangelog if !renamed.exists(_ eq source) => source
    }
  }

  private def named(plan: LogicalPlan, columns: Seq[Attribute]): LogicalPlan =
    if (plan.output.map(_.exprId) == columns.map(_.exprId)) plan
    else Project(RenameColumns(plan.output, columns), plan)
}
