// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.analysis.{
  DeduplicateRelations,
  EliminateSubqueryAliases,
  EliminateView,
  UpdateAttributeNullability
}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.python.{
  ExtractGroupingPythonUDFFromAggregate,
  ExtractPythonUDFFromAggregate
}

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
