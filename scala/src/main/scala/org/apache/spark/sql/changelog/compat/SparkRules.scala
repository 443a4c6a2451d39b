// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.api.java.function.FilterFunction
import org.apache.spark.sql.catalyst.analysis.{
  DeduplicateRelations,
  EliminateSubqueryAliases,
  EliminateView,
  UpdateAttributeNullability
}
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.expressions.{AttributeMap, Expression, Literal, SortOrder}
import org.apache.spark.sql.catalyst.optimizer._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.TypedAggregateExpression
import org.apache.spark.sql.execution.python.{
  ExtractGroupingPythonUDFFromAggregate,
  ExtractPythonUDFFromAggregate
}
import org.apache.spark.sql.execution.window.{Partial, WindowGroupLimitExec}
import org.apache.spark.sql.internal.UDFAdaptors
import org.apache.spark.util.IndylambdaScalaClosures

/** The rules of Spark's that are called by themselves: what a plan looks like depends on them. */
object SparkRules {

  /** Puts common tables where they are read. */
  def inlineCommonTables(plan: LogicalPlan): LogicalPlan = InlineCTE(alwaysInline = true)(plan)

  /** Makes joins of `IN` and `EXISTS`. */
  def joinPredicateSubqueries(plan: LogicalPlan): LogicalPlan = RewritePredicateSubquery(plan)

  /** Leaves out columns that nobody reads. */
  def pruneColumns(plan: LogicalPlan): LogicalPlan = ColumnPruning(plan)

  /** What Spark tidies up behind the rules that make joins. */
  def tidyJoins(plan: LogicalPlan): LogicalPlan =
    Seq[Rule[LogicalPlan]](
      EliminateOuterJoin,
      PushPredicateThroughJoin,
      ColumnPruning,
      CollapseProject,
      RemoveNoopOperators).foldLeft(plan)((tidied, rule) => rule(tidied))

  def removeRedundantAliases(plan: LogicalPlan): LogicalPlan = RemoveRedundantAliases(plan)

  /** A copy of the plan all of whose columns are new, as Spark copies a common table expression. */
  def withNewColumns(plan: LogicalPlan): LogicalPlan =
    DeduplicateRelations(Join(plan, plan, Inner, None, JoinHint.NONE)).children.last

  /** The plan without names of views and of subqueries at its top. */
  def withoutNames(plan: LogicalPlan): LogicalPlan = EliminateView(EliminateSubqueryAliases(plan))

  /** Lets columns be NULL where what they are made of can. */
  def updateNullability(plan: LogicalPlan): LogicalPlan = UpdateAttributeNullability(plan)

  /** Calls functions of Python outside of aggregates, as far as Spark does. */
  def extractPythonFromAggregates(plan: LogicalPlan): LogicalPlan =
    ExtractGroupingPythonUDFFromAggregate(ExtractPythonUDFFromAggregate(plan))

  /** Makes equal numbers of floating point of equal bytes. */
  def normalizeFloats(value: Expression): Expression = NormalizeFloatingNumbers.normalize(value)

  /** What such a number was made of. */
  def withoutNormalization(value: Expression): Expression = value match {
    case NormalizeNaNAndZero(number) => number
    case other => other
  }

  /** Whether Spark keeps state for a node. */
  def keepsState(node: LogicalPlan): Boolean = StatefulNode(node)
}

/** Leaves behind in each task the rows that can't have a rank up to `limit` among all rows. */
object RankLimit {
  def apply(order: Seq[SortOrder], rank: Expression, limit: Int, rows: SparkPlan): SparkPlan =
    WindowGroupLimitExec(Nil, order, rank, limit, Partial, rows)
}

/** What Spark makes of functions of typed datasets. */
object TypedFunctions {

  /** Whether an expression calls a function of a typed dataset, such as an `Aggregator` or that of a `filter`. */
  def isCalledBy(expression: Expression): Boolean = expression match {
    case _: TypedAggregateExpression => true
    case Invoke(Literal(_: Function1[_, _] | _: FilterFunction[_], _), _, _, _, _, _, _, _) =>
      true
    case _ => false
  }

  /** Whether a function over partitions is what `flatMap` makes of one over rows. */
  def isFlatMap(function: Iterator[Any] => Iterator[Any]): Boolean =
    IndylambdaScalaClosures.getSerializationProxy(function).exists { lambda =>
      lambda.getImplClass == UDFAdaptors.getClass.getName.replace('.', '/') &&
      lambda.getImplMethodName.contains("flatMapToMapPartitions")
    }
}

/**
 * One plan in place of two. It has the columns of the first one.
 *
 * @param places
 *   where in its output the columns of the second one are
 */
final case class MergedPlans(plan: LogicalPlan, places: AttributeMap[Int])
