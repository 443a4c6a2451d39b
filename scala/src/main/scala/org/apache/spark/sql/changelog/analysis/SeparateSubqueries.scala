// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions.{
  Attribute, AttributeMap, ExprId, LateralSubquery, SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.LeftSemiOrAnti
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, Join, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{FromChangelog, RenameColumns}

/**
 * Gives a source different columns inside and outside a subquery, and on both sides of a semi or
 * anti join.
 *
 * {{{
 *   Project [scalar-subquery [d#1 = outer(c#2)]]     Project [scalar-subquery [d#3 = outer(c#2)]]
 *   :  +- FromChangelog [d#1]                        :  +- Project [d#1 AS d#3]
 *   :                                          =>    :     +- FromChangelog [d#1]
 *   +- Project [d#1 AS c#2]                          +- Project [d#1 AS c#2]
 *      +- FromChangelog [d#1]                           +- FromChangelog [d#1]
 * }}}
 *
 * Spark does the same for its own tables. Three problems occur otherwise:
 *
 *   - `c` equals `d` once redundant aliases are gone, and the subquery compares `d` with
 *     itself.
 *   - A filter by a subquery stays above columns with ids of the subquery. Ids differ from
 *     batch to batch, because a batch with rows has an alias that Spark removes.
 *   - Spark pushes an unconditional semi or anti join below projections on its left, where the
 *     columns of the right side already exist.
 */
private[analysis] object SeparateSubqueries extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      separate(withSeparateSides(plan), Set.empty)
    }

  private def withSeparateSides(plan: LogicalPlan): LogicalPlan = plan.transformUpWithSubqueries {
    case join @ Join(left, right, LeftSemiOrAnti(_), _, _) =>
      val own = withOwnColumns(right, columnsOf(left))
      if (own eq right) join
      else join.copy(right = own).rewriteAttrs(AttributeMap(right.output.zip(own.output)))
  }

  /** Equal subqueries beside each other stay equal, for example in GROUP BY and SELECT. */
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
   * Returns the sources read under their own columns. Projections with marked columns are
   * skipped, because several readings may share a source object.
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
