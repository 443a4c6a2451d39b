// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils.isBinaryStable

import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Looks for groups in subqueries, not for the rows they are made of.
 *
 * {{{
 *   Aggregate [g] [g, count(1) AS n]             Filter g IN (listquery)
 *   +- Filter g IN (listquery)            =>     +- Aggregate [g] [g, count(1) AS n]
 *      +- t                                         +- t
 * }}}
 *
 * Spark's optimizer moves all filters down, to where they leave out most rows. One with a subquery that
 * changes becomes a join, which keeps the rows it reads: of groups there are fewer. Leaves alone groups
 * by what is equal without having equal bytes, since a group has the value of one of its rows.
 */
private[optimizer] object LiftSubqueryFilters extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case aggregate: Aggregate if aggregate.groupingExpressions.nonEmpty =>
      aggregate.child match {
        case filter: Filter => lift(aggregate, filter, identity)
        case project @ Project(columns, filter: Filter)
            if columns.forall(_.isInstanceOf[Attribute]) =>
          lift(aggregate, filter, child => project.copy(child = child))
        case _ => aggregate
      }
  }

  private def lift(
      aggregate: Aggregate,
      filter: Filter,
      above: LogicalPlan => LogicalPlan): LogicalPlan = {
    val groups = AttributeSet(aggregate.groupingExpressions.collect {
      case group: Attribute if isBinaryStable(group.dataType) => group
    })
    val (lifted, kept) = splitConjunctivePredicates(filter.condition).partition { condition =>
      condition.references.nonEmpty && condition.references.subsetOf(groups) &&
      condition.exists(isChangingSubquery)
    }
    if (lifted.isEmpty) aggregate
    else {
      val read = AttributeSet(lifted.flatMap(_.references)).toSeq
      val found = read.map(group => group -> aggregate.aggregateExpressions.find(gives(_, group)))
      val missing = found.collect { case (group, None) => group }
      val columns = AttributeMap(found.map { case (group, column) =>
        group -> column.fold(group)(_.toAttribute)
      })
      val grouped = aggregate.copy(
        aggregateExpressions = aggregate.aggregateExpressions ++ missing,
        child = above(
          kept
            .reduceOption(And(_, _))
            .foldLeft(filter.child)((child, condition) => Filter(condition, child))))
      val conditions = lifted.map(_.transform { case column: Attribute =>
        columns.getOrElse(column, column)
      })
      val filtered = Filter(conditions.reduce(And(_, _)), grouped)
      if (missing.isEmpty) filtered else Project(aggregate.output, filtered)
    }
  }

  private def gives(result: NamedExpression, group: Attribute): Boolean = result match {
    case column: Attribute => column.semanticEquals(group)
    case Alias(column: Attribute, _) => column.semanticEquals(group)
    case _ => false
  }

  private def isChangingSubquery(expression: Expression): Boolean = expression match {
    case subquery: SubqueryExpression => FromChangelog.streamsIn(subquery.plan)
    case _ => false
  }
}
