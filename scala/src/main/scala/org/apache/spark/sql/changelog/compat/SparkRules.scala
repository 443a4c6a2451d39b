// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.api.java.function.FilterFunction
import org.apache.spark.sql.catalyst.analysis.{
  DeduplicateRelations, EliminateSubqueryAliases, EliminateView, UpdateAttributeNullability
}
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.expressions.{AttributeMap, Expression, Literal, SortOrder}
import org.apache.spark.sql.catalyst.optimizer._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{
  Join, JoinHint, LogicalPlan, OneRowRelation, RepartitionByExpression
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.TypedAggregateExpression
import org.apache.spark.sql.execution.python.{
  ExtractGroupingPythonUDFFromAggregate, ExtractPythonUDFFromAggregate
}
import org.apache.spark.sql.execution.window.{Partial, WindowGroupLimitExec}
import org.apache.spark.sql.internal.UDFAdaptors
import org.apache.spark.util.IndylambdaScalaClosures

/** Spark's rules called individually. The form of a plan depends on these rules. */
object SparkRules {

  /** Inlines common table expressions. */
  def inlineCommonTables(plan: LogicalPlan): LogicalPlan = InlineCTE(alwaysInline = true)(plan)

  /** Turns `IN` and `EXISTS` into joins. */
  def joinPredicateSubqueries(plan: LogicalPlan): LogicalPlan = RewritePredicateSubquery(plan)

  /** Removes unused columns. */
  def pruneColumns: Rule[LogicalPlan] = ColumnPruning

  /** Applies the cleanup rules that Spark runs after creating joins. */
  def cleanUpJoins(plan: LogicalPlan): LogicalPlan =
    Seq[Rule[LogicalPlan]](
      EliminateOuterJoin,
      PushPredicateThroughJoin,
      ColumnPruning,
      CollapseProject,
      RemoveNoopOperators).foldLeft(plan)((tidied, rule) => rule(tidied))

  def removeRedundantAliases(plan: LogicalPlan): LogicalPlan = RemoveRedundantAliases(plan)

  /** Returns a copy of the plan with new column ids, as Spark copies a common table expression. */
  def withNewColumns(plan: LogicalPlan): LogicalPlan =
    DeduplicateRelations(Join(plan, plan, Inner, None, JoinHint.NONE)).children.last

  /** Removes the names of views and subqueries at the top of the plan. */
  def withoutNames(plan: LogicalPlan): LogicalPlan = EliminateView(EliminateSubqueryAliases(plan))

  /** Makes columns nullable if their input is nullable. */
  def updateNullability: Rule[LogicalPlan] = UpdateAttributeNullability

  /** Moves calls of Python functions out of aggregates, as far as Spark does. */
  def extractPythonFromAggregates(plan: LogicalPlan): LogicalPlan =
    ExtractGroupingPythonUDFFromAggregate(ExtractPythonUDFFromAggregate(plan))

  /** Gives equal floating point numbers equal bytes. */
  def normalizeFloats(value: Expression): Expression = NormalizeFloatingNumbers.normalize(value)

  /** Gives equal values equal bytes: normalizes floating point numbers, and sorts the entries of maps by key. */
  def sameBytes(value: Expression): Expression = {
    val placed = RepartitionByExpression(Seq(value), OneRowRelation(), None)
    normalizeFloats(InsertMapSortInRepartitionExpressions(placed).expressions.head)
  }

  /** Removes the normalization from a number. */
  def withoutNormalization(value: Expression): Expression = value match {
    case NormalizeNaNAndZero(number) => number
    case other => other
  }

  /** Returns whether Spark keeps state for a node. */
  def keepsState(node: LogicalPlan): Boolean = StatefulNode(node)
}

/** Drops, in each task, the rows that cannot have a rank up to `limit` among all rows. */
object RankLimit {
  def apply(order: Seq[SortOrder], rank: Expression, limit: Int, rows: SparkPlan): SparkPlan =
    WindowGroupLimitExec(Nil, order, rank, limit, Partial, rows)
}

/** Recognizes Spark's expressions for functions of typed datasets. */
object TypedFunctions {

  /**
   * Returns whether an expression calls a function of a typed dataset, such as an `Aggregator` or the function
   * of a `filter`.
   */
  def isCalledBy(expression: Expression): Boolean = expression match {
    case _: TypedAggregateExpression => true
    case Invoke(Literal(_: Function1[_, _] | _: FilterFunction[_], _), _, _, _, _, _, _, _) =>
      true
    case _ => false
  }

  /** Returns whether a function over partitions is Spark's adapter for a `flatMap` over rows. */
  def isFlatMap(function: Iterator[Any] => Iterator[Any]): Boolean =
    IndylambdaScalaClosures.getSerializationProxy(function).exists { lambda =>
      lambda.getImplClass == UDFAdaptors.getClass.getName.replace('.', '/') &&
      lambda.getImplMethodName.contains("flatMapToMapPartitions")
    }
}

/**
 * A plan merged from two plans. The output includes the columns of the first plan.
 *
 * @param places
 *   the index in the output of each column of the second plan
 */
final case class MergedPlans(plan: LogicalPlan, places: AttributeMap[Int])
