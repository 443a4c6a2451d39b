// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import scala.collection.mutable

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression, AggregateFunction
}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{LeftOuter, LeftSingle}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils.isBinaryStable
import org.apache.spark.sql.types.{DataType, StructType}

import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Turns subqueries into joins. Spark's rule makes joins of predicates, and Spark's cleanup of joins follows. Spark's
 * optimizer has already turned some subqueries into joins.
 */
private[optimizer] object JoinSubqueries extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.containsPattern(PLAN_EXPRESSION)) plan
    else {
      val placed = LiftSubqueryFilters(LimitBelowSubqueries(plan))
      SparkRules.cleanUpJoins(JoinScalarSubqueries(SparkRules.joinPredicateSubqueries(placed)))
    }
}

/**
 * Moves filters with subqueries above an aggregate, from rows to groups.
 *
 * {{{
 *   Aggregate [g] [g, count(1) AS n]             Filter g IN (listquery)
 *   +- Filter g IN (listquery)            =>     +- Aggregate [g] [g, count(1) AS n]
 *      +- t                                         +- t
 * }}}
 *
 * Spark pushes all filters down, to drop rows early. A filter with a changing subquery becomes a
 * join with stored input, and groups are fewer than rows. Groups with equal values in different
 * bytes stay unchanged, because a group shows the value of one row.
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

/**
 * Moves a limit back below columns with subqueries, to the rows limited by the query.
 *
 * {{{
 *   Limit 2                                 Project [k, scalar-subquery]
 *   +- Project [k, scalar-subquery]    =>   +- Limit 2
 *      +- Sort [v]                             +- Sort [v]
 * }}}
 *
 * Spark's optimizer moves columns below limits. A join made from such a column loses the order
 * needed by the limit, and joins all rows.
 */
private[optimizer] object LimitBelowSubqueries extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case limit @ (_: LocalLimit | _: GlobalLimit | _: Offset) =>
      limit.children.head match {
        case project: Project if project.projectList.exists(SubqueryExpression.hasSubquery) =>
          project.withNewChildren(Seq(limit.withNewChildren(project.children)))
        case _ => limit
      }
  }
}

/**
 * Turns scalar subqueries over changing tables into joins with their single row.
 *
 * {{{
 *   Filter fare > scalar-subquery             Project [fare]
 *   :  +- Aggregate [avg(fare)]               +- Filter fare > avg
 *   +- rides                          =>         +- Join LeftOuter
 *                                                   :- rides
 *                                                   +- Aggregate [avg(fare) AS avg]
 * }}}
 *
 * Spark would run the subquery before the query, and over the changes of one batch only. If
 * several rows are possible, the join is a `LeftSingle`, which fails like the subquery. A value
 * beside aggregates is joined with the result of the aggregate. Subqueries over static tables and
 * correlated subqueries stay unchanged. The latter are joins at this point.
 */
object JoinScalarSubqueries extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case aggregate: Aggregate if isBesideAggregates(aggregate) => join(aboveAggregate(aggregate))
    case node if node.children.nonEmpty && node.expressions.exists(hasSubquery) => join(node)
  }

  private def join(plan: LogicalPlan): LogicalPlan = plan match {
    // Values for an aggregate's input are joined below the aggregate, values for the projection
    // above.
    case Project(columns, aggregate: Aggregate) =>
      joinFirst(Project(columns, joinFirst(aggregate)))
    case other => joinFirst(other)
  }

  /** Joins the subqueries with the first input. For a join condition, either input is correct. */
  private def joinFirst(node: LogicalPlan): LogicalPlan = {
    val subqueries = mutable.LinkedHashMap.empty[Expression, (LogicalPlan, Attribute)]
    val replaced = node.transformExpressions {
      case subquery: ScalarSubquery if isChanging(subquery) =>
        subqueries
          .getOrElseUpdate(
            subquery.canonicalized, {
              val value = Alias(subquery.plan.output.head, "scalarsubquery")()
              // Without a row, the value is NULL.
              val column = value.toAttribute.withNullability(subquery.nullable)
              (Project(Seq(value), apply(subquery.plan)), column)
            })
          ._2
    }
    if (subqueries.isEmpty) node
    else {
      val joined = subqueries.values.foldLeft(node.children.head) { case (left, (right, _)) =>
        val joinType = if (right.maxRows.exists(_ <= 1)) LeftOuter else LeftSingle
        Join(left, right, joinType, None, JoinHint.NONE)
      }
      val result = replaced.withNewChildren(joined +: replaced.children.tail)
      if (result.output == node.output) result else Project(node.output, result)
    }
  }

  /** Whether a subquery is part of the result, outside groups and aggregate calls. */
  private def isBesideAggregates(aggregate: Aggregate): Boolean = {
    val groups = aggregate.groupingExpressions
    def isBeside(expression: Expression): Boolean = expression match {
      case _: AggregateExpression => false
      case group if groups.exists(_.semanticEquals(group)) => false
      case subquery: ScalarSubquery => isChanging(subquery)
      case other => other.children.exists(isBeside)
    }
    aggregate.aggregateExpressions.exists(isBeside)
  }

  /** Returns the aggregate with a projection that computes its results. */
  private def aboveAggregate(aggregate: Aggregate): LogicalPlan = aggregate match {
    case PhysicalAggregation(groups, functions, results, child) =>
      val computed = functions.map { function =>
        Alias(function, function.sql)(exprId = function.resultId)
      }
      val below = Aggregate(groups.map(groupOf), groups ++ computed, child)
      Project(results, below)
    case other => other
  }

  private def groupOf(named: NamedExpression): Expression = named match {
    case Alias(group, _) => group
    case column => column
  }

  private def hasSubquery(expression: Expression): Boolean = expression.exists {
    case subquery: ScalarSubquery => isChanging(subquery)
    case _ => false
  }

  private def isChanging(subquery: ScalarSubquery): Boolean =
    subquery.outerAttrs.isEmpty &&
      subquery.plan.collectWithSubqueries { case table: FromChangelog => table }.nonEmpty
}

/**
 * Hides DISTINCT aggregates and Python functions in subqueries over changing tables from Spark's
 * optimizer.
 *
 * {{{
 *   count(DISTINCT a), count(DISTINCT b)   =>   count(DistinctValues(a)), count(DistinctValues(b))
 *   plus(a) > 1                            =>   PythonCall(plus, a) > 1
 * }}}
 *
 * Spark fully optimizes a subquery before the outer query. In its last phase, Spark combines
 * several DISTINCT aggregates into one, and moves Python functions into a node. Both rewrites are
 * only valid for static data. The other rules of that phase are valid for changing rows.
 */
private[optimizer] object KeepCalls {

  /**
   * Replaces the calls of a subquery over a stream with placeholders, before the last phase of
   * Spark's optimizer.
   */
  def hide(subquery: Subquery): Subquery =
    if (!FromChangelog.streamsIn(subquery)) subquery
    else {
      val hidden = subquery.transformUp { case node =>
        node.transformExpressionsUp {
          case call: AggregateExpression if call.isDistinct =>
            call.copy(
              aggregateFunction = DistinctValues(call.aggregateFunction),
              isDistinct = false)
          case call: PythonUDF if PythonUDF.isScalarPythonUDF(call) =>
            PythonCall(call, call.children)
        }
      }
      hidden.asInstanceOf[Subquery]
    }
}

/** Restores the original calls, once the subqueries are part of the query. */
private[optimizer] object ShowCalls extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformAllExpressionsWithSubqueries {
      case call @ AggregateExpression(DistinctValues(function), _, _, _, _) =>
        call.copy(aggregateFunction = function, isDistinct = true)
      case PythonCall(function, arguments) => function.withNewChildren(arguments)
    }
}

/** HiddenCall: a placeholder call, unknown to Spark and never evaluated. */
private sealed trait HiddenCall extends CodegenFallback { this: Expression =>
  override def eval(input: InternalRow): Any =
    throw SparkException.internalError(s"$this is never computed")
}

/** A DISTINCT aggregate. */
private case class DistinctValues(function: AggregateFunction)
    extends AggregateFunction
    with HiddenCall {

  override def children: Seq[Expression] = Seq(function)
  override def dataType: DataType = function.dataType
  override def nullable: Boolean = function.nullable
  override def defaultResult: Option[Literal] = function.defaultResult
  override def aggBufferSchema: StructType = function.aggBufferSchema
  override def aggBufferAttributes: Seq[AttributeReference] = function.aggBufferAttributes
  override def inputAggBufferAttributes: Seq[AttributeReference] =
    function.inputAggBufferAttributes

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): DistinctValues =
    copy(function = newChildren.head.asInstanceOf[AggregateFunction])
}

/** A scalar Python function. */
private case class PythonCall(function: PythonUDF, override val children: Seq[Expression])
    extends Expression
    with HiddenCall {

  override def dataType: DataType = function.dataType
  override def nullable: Boolean = function.nullable
  override lazy val deterministic: Boolean =
    function.udfDeterministic && children.forall(_.deterministic)

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): PythonCall = copy(children = newChildren)
}
