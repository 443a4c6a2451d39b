// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeMap,
  ExprId,
  LateralSubquery,
  SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.LeftSemiOrAnti
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, Join, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{FromChangelog, RenameColumns}

/**
 * Gives a source other columns in a subquery than it has around it, and on the right of a semi or anti
 * join than on its left.
 * {{{
 *   Project [scalar-subquery [d#1 = outer(c#2)]]     Project [scalar-subquery [d#3 = outer(c#2)]]
 *   :  +- FromChangelog [d#1]                        :  +- Project [d#1 AS d#3]
 *   :                                          =>    :     +- FromChangelog [d#1]
 *   +- Project [d#1 AS c#2]                          +- Project [d#1 AS c#2]
 *      +- FromChangelog [d#1]                           +- FromChangelog [d#1]
 * }}}
 * Spark does so for what it takes for a table. Without it, `c` is `d` once redundant aliases are gone,
 * and the subquery compares `d` with itself. A filter by a subquery stays above columns that have the ids of
 * the subquery's, and ids differ from batch to batch: what brings rows has an alias below that Spark
 * removes. And where nothing ties such a join's sides, it is pushed below
 * what is computed on its left, and finds its columns there already.
 */
private[analysis] object SeparateSubqueries extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      separate(withOwnSides(plan), Set.empty)
    }

  private def withOwnSides(plan: LogicalPlan): LogicalPlan = plan.transformUpWithSubqueries {
    case join @ Join(left, right, LeftSemiOrAnti(_), _, _) =>
      val own = withOwnColumns(right, columnsOf(left))
      if (own eq right) join
      else join.copy(right = own).rewriteAttrs(AttributeMap(right.output.zip(own.output)))
  }

  /** Two subqueries side by side stay the same if they are: one may be in GROUP BY, and one in SELECT. */
  private def separate(plan: LogicalPlan, around: Set[ExprId]): LogicalPlan = {
    val taken = around ++ columnsOf(plan)
    plan.transformAllExpressions { case subquery: SubqueryExpression =>
      val own = subquery match {
        case _: LateralSubquery if !subquery.isCorrelated => subquery.plan
        case _: LateralSubquery =>
          named(withOwnColumns(subquery.plan, taken), subquery.plan.output)
        case _ => withOwnColumns(subquery.plan, taken)
      }
      subquery.withNewPlan(separate(own, taken))
    }
  }

  private def withOwnColumns(plan: LogicalPlan, taken: Set[ExprId]): LogicalPlan = {
    val again = sources(plan).filter(_.output.exists(column => taken.contains(column.exprId)))
    if (again.isEmpty) plan
    else {
      plan.transformUpWithNewOutput {
        case source: FromChangelog if again.exists(_ eq source) =>
          val columns = source.output.map(_.newInstance())
          ReadSourcesOnce.readAs(source, columns) -> source.output.zip(columns)
      }
    }
  }

  private def columnsOf(plan: LogicalPlan): Set[ExprId] =
    sources(plan).flatMap(_.output).map(_.exprId).toSet

  /**
   * The sources whose columns are read as they are. One that is read in other columns may be the same
   * object as one that is not.
   */
  private def sources(plan: LogicalPlan): Seq[FromChangelog] = plan match {
    case Project(columns, _: FromChangelog) if columns.exists(ReadSourcesOnce.isMarked) => Nil
    case source: FromChangelog => Seq(source)
    case other => other.children.flatMap(sources)
  }

  private def named(plan: LogicalPlan, columns: Seq[Attribute]): LogicalPlan =
    if (plan.output.map(_.exprId) == columns.map(_.exprId)) plan
    else Project(RenameColumns(plan.output, columns), plan)
}
