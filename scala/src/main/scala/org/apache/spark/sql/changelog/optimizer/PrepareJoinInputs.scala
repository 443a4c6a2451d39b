// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.inference.EquiJoin
import org.apache.spark.sql.changelog.inference.keys.UpsertKeys
import org.apache.spark.sql.changelog.inference.nodes.StaticInference
import org.apache.spark.sql.changelog.plans.{FromChangelog, LookupJoin, LookupTable, TemporalJoin}

/**
 * Rewrites join inputs to the form with the least state.
 *
 * {{{
 *   Join Inner, uid = user                  Project [amount, name]
 *   :- Project [uid, amount]                +- Join Inner, uid = user
 *   :  +- Filter isnotnull(uid)       =>       :- Project [uid, amount, oid]
 *   :     +- orders  key=(oid)                 :  +- orders  key=(oid)
 *   +- users  key=(user)                       +- users  key=(user)
 * }}}
 *
 * Two of Spark's rewrites are undone. Spark prunes unread key columns: with a key, the join
 * replaces rows by key; without, the join counts whole rows. Spark also filters out rows with a
 * NULL join key. A filter requires before images, and the join drops such rows anyway. Filters
 * over insert-only rows and static inputs stay unchanged.
 */
object PrepareJoinInputs extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUp(pushFilters).transformUp(prepare).transformUp {
      case project @ Project(_, Project(columns, join: Join))
          if columns.forall(_.isInstanceOf[Attribute]) =>
        project.copy(child = join)
    }

  private def prepare: PartialFunction[LogicalPlan, LogicalPlan] = {
    case join: Join if !join.children.exists(StaticInference.isStatic) =>
      val equi = EquiJoin(join)
      val prepared = join.copy(
        left = withKey(withoutNullFilter(join.left, nullable(join, equi, isLeft = true))),
        right = withKey(withoutNullFilter(join.right, nullable(join, equi, isLeft = false))))
      prepared.copyTagsFrom(join)
      if (prepared.output.size == join.output.size) prepared else Project(join.output, prepared)
    case join: LookupJoin =>
      val prepared = join.copy(right = withKey(join.right))
      prepared.copyTagsFrom(join)
      if (prepared.output.size == join.output.size) prepared else Project(join.output, prepared)
  }

  private def pushFilters: PartialFunction[LogicalPlan, LogicalPlan] = {
    case Filter(condition, join: LookupJoin) => pushLeft(condition, join)
    case Filter(condition, join: TemporalJoin) => pushLeft(condition, join)
  }

  /**
   * Pushes filters to the left rows. Spark knows neither of these joins, and does not push them.
   */
  private def pushLeft(condition: Expression, join: BinaryNode): LogicalPlan = {
    val (pushed, others) = splitConjunctivePredicates(condition).partition { part =>
      part.deterministic && part.references.subsetOf(join.left.outputSet)
    }
    val below = pushed.reduceOption(And(_, _)).map(Filter(_, join.left)).getOrElse(join.left)
    val filtered = join.withNewChildren(Seq(below, join.right))
    others.reduceOption(And(_, _)).map(Filter(_, filtered)).getOrElse(filtered)
  }

  /** Returns the parts of the join key whose NULLs exclude a row of one side from the result. */
  private def nullable(join: Join, equi: EquiJoin, isLeft: Boolean): Seq[Expression] = {
    val isPreserved = join.joinType match {
      case _: InnerLike | LeftSemi => false
      case FullOuter => true
      case RightOuter => !isLeft
      case _ => isLeft
    }
    if (isPreserved) Nil
    else equi.key(isLeft).zip(equi.matchesNull).collect { case (part, false) => part }
  }

  private def withoutNullFilter(plan: LogicalPlan, key: Seq[Expression]): LogicalPlan =
    plan match {
      case project: Project =>
        project.copy(child = withoutNullFilter(
          project.child,
          key.filter { part =>
            part.references.subsetOf(project.child.outputSet)
          }))
      case filter @ Filter(condition, child) if !isInsertOnly(child) =>
        val conditions = splitConjunctivePredicates(condition)
        val kept = conditions.filterNot {
          case IsNotNull(column) => key.exists(_.semanticEquals(column))
          case _ => false
        }
        if (kept.size == conditions.size) filter
        else kept.reduceOption(And(_, _)).map(Filter(_, child)).getOrElse(child)
      case other => other
    }

  private def isInsertOnly(plan: LogicalPlan): Boolean = plan match {
    case source: FromChangelog => source.produces.isInsertOnly
    case _: Project | _: Filter => isInsertOnly(plan.children.head)
    case _ => false
  }

  /** Returns the input with a key among its columns, if the plan below a projection has a key. */
  private def withKey(plan: LogicalPlan): LogicalPlan = plan match {
    case Project(columns, child) =>
      val below = withKey(child)
      val project = Project(columns, below)
      val missing =
        if (keys(project).nonEmpty) Nil
        else keys(below).headOption.toSeq.flatMap(_.filterNot(project.outputSet.contains))
      Project(
        columns ++ below.output.filter(column => missing.exists(_.semanticEquals(column))),
        below)
    case other => other
  }

  private def keys(plan: LogicalPlan): Seq[AttributeSet] =
    UpsertKeys(plan, plan.children.map(keys))
}

/**
 * Restores the original names of columns renamed by Spark.
 *
 * {{{
 *   Join LeftSemi, city = city#7                  Join LeftSemi, city = city
 *   :- rides                                =>    :- rides
 *   +- Project [city#3 AS city#7]                 +- Project [city#3 AS city]
 * }}}
 *
 * If both sides of a subquery's join read one table, Spark puts an expression id into a column
 * name. Spark also puts a counter into the name of a common subexpression. The names differ at
 * each start, and state is read by column name. Names of result columns stay unchanged.
 */
object NameColumns extends Rule[LogicalPlan] {
  private val WithId = """(.+)#\d+.*""".r
  private val Common = """_common_expr_\d+""".r

  override def apply(plan: LogicalPlan): LogicalPlan = {
    val names = renamed(plan)
    if (names.isEmpty) plan
    else {
      plan.transformAllExpressions {
        case column: Attribute if names.contains(column.exprId) =>
          column.withName(names(column.exprId))
        case alias: Alias if names.contains(alias.exprId) =>
          alias.copy(name = names(alias.exprId))(
            alias.exprId,
            alias.qualifier,
            alias.explicitMetadata,
            alias.nonInheritableMetadataKeys)
      }
    }
  }

  private def renamed(plan: LogicalPlan): Map[ExprId, String] = {
    val results = plan.outputSet
    val aliases = plan.collect { case node => node.expressions }.flatten.collect {
      case alias: Alias if !results.contains(alias.toAttribute) => alias
    }
    val withId = aliases.collect { case alias @ Alias(_, WithId(name)) => alias.exprId -> name }
    val common = aliases.filter(alias => Common.matches(alias.name)).map(_.exprId).distinct
    val numbered = common.zipWithIndex.map { case (id, index) => id -> s"_common_expr_$index" }
    (withId ++ numbered).toMap
  }
}

/**
 * Moves scalar Python functions below or above an aggregate.
 *
 * {{{
 *   Aggregate [f(a)], [f(a), sum(g(b))]   =>   Aggregate [fa], [fa, sum(gb)]
 *   +- t [a, b]                                +- Project [a, b, f(a) AS fa, g(b) AS gb]
 *                                                 +- t [a, b]
 * }}}
 *
 * Spark does the same for its own aggregates, but only after ours are planned.
 */
private[optimizer] object PullOutPythonFunctions extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    SparkRules.extractPythonFromAggregates(plan).transformUp {
      case aggregate: Aggregate if aggregate.aggregateExpressions.exists(callsPython) =>
        val calls = mutable.LinkedHashMap.empty[Expression, Alias]
        val results = aggregate.aggregateExpressions.map(_.transformDown {
          case call: PythonUDF if PythonUDF.isScalarPythonUDF(call) =>
            calls.getOrElseUpdate(call.canonicalized, Alias(call, call.name)()).toAttribute
        })
        aggregate.copy(
          aggregateExpressions = results.map(_.asInstanceOf[NamedExpression]),
          child = Project(aggregate.child.output ++ calls.values, aggregate.child))
    }

  private def callsPython(expression: Expression): Boolean =
    expression.exists(PythonUDF.isScalarPythonUDF)
}

/**
 * Replaces `lookup` tables by ordinary tables in a batch query, where all rows arrive at once.
 */
object ReadLookupTables extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case LookupTable(table) => table
  }
}
