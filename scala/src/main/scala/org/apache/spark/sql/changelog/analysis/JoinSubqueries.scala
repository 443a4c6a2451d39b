// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.analysis.{EliminateSubqueryAliases, EliminateView}
import org.apache.spark.sql.catalyst.expressions.{RuntimeReplaceableAggregate, SubqueryExpression}
import org.apache.spark.sql.catalyst.optimizer._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, LeftSingle}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.AS_OF_JOIN

import org.apache.spark.sql.changelog.analysis.inference.StaticInference
import org.apache.spark.sql.changelog.optimizer.JoinScalarSubqueries
import org.apache.spark.sql.changelog.plans.{SubqueryJoin, ToChangelog}

/**
 * Turns subqueries over changing tables into joins, by Spark's own rules.
 *
 * {{{
 *   ToChangelog                           ToChangelog
 *   +- Filter id IN (listquery)           +- Join LeftSemi, id = uid
 *      :  +- FromChangelog          =>       :- FromChangelog
 *      +- FromChangelog                      +- FromChangelog
 * }}}
 *
 * Spark's optimizer would do so later. But a stream gets its rows before that, and only where it is
 * in the plan itself, not in an expression. Leaves alone queries whose subqueries never change.
 */
object JoinSubqueries extends Rule[LogicalPlan] {

  /**
   * What the optimizer does to subqueries, in its order. Rewriting one may bring another one, from
   * within it, to the top: its predicates must be pulled up before it is rewritten, too.
   */
  private val rules: Seq[Rule[LogicalPlan]] = Seq(
    EliminateSubqueryAliases,
    EliminateView,
    RewriteNonCorrelatedExists,
    ReplaceAggregates,
    PullOutGroupingExpressions,
    OptimizeOneRowRelationSubquery,
    PullOutNestedDataOuterRefExpressions,
    PullupCorrelatedPredicates,
    RewritePredicateSubquery,
    PullupCorrelatedPredicates,
    RewriteCorrelatedScalarSubquery,
    PullupCorrelatedPredicates,
    RewriteLateralSubquery,
    JoinScalarSubqueries)

  /** How many levels of subqueries in subqueries there may be. */
  private val MaxLevels = 20

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(isOurs)) plan
    else {
      AnalysisHelper.allowInvokingTransformsInAnalyzer {
        // what is left of as-of joins becomes subqueries
        RewriteAsOfJoin(plan).transformUp {
          case root: ToChangelog if isOurs(root) => root.copy(child = join(root.child, MaxLevels))
        }
      }
    }

  private def isOurs(plan: LogicalPlan): Boolean = plan match {
    case root: ToChangelog =>
      root.streaming && (hasSubqueries(root.child) || root.containsPattern(AS_OF_JOIN))
    case _ => false
  }

  private def hasSubqueries(plan: LogicalPlan): Boolean = plan.exists { node =>
    node.subqueries.exists(subquery => !StaticInference.isStatic(subquery))
  }

  /**
   * Lets a limit be right above the sort it belongs to, where Spark looks for its order as it
   * computes the limit for each outer row.
   */
  private def limitSorted(plan: LogicalPlan): LogicalPlan = plan.transformAllExpressions {
    case subquery: SubqueryExpression if subquery.isCorrelated =>
      subquery.withNewPlan(limitSorted(subquery.plan).transform {
        case limit @ GlobalLimit(_, LocalLimit(count, Project(columns, sort: Sort))) =>
          Project(columns, limit.copy(child = LocalLimit(count, sort)))
      })
  }

  /** Those of the top level become joins; then those within them are at the top. */
  private def join(plan: LogicalPlan, levels: Int): LogicalPlan = {
    val joined = rules.foldLeft(limitSorted(plan))((plan, rule) => rule(plan)).transformUp {
      case Join(left, right, joinType @ (_: ExistenceJoin | LeftSingle), condition, _) =>
        SubqueryJoin(joinType, condition, left, right)
    }
    if (levels > 0 && hasSubqueries(joined) && !joined.fastEquals(plan)) join(joined, levels - 1)
    else joined
  }
}

/** Lets Spark see that a `count_if` of no rows, too, is not NULL but zero. */
private object ReplaceAggregates extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformAllExpressionsWithSubqueries { case function: RuntimeReplaceableAggregate =>
      function.replacement
    }
}
