// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.OUTER_REFERENCE

/**
 * A decomposed subquery that selects one version for a left row.
 *
 * {{{
 *   GlobalLimit 1                                isLimited
 *   +- Sort [r.since DESC]                       order        [r.since DESC]
 *      +- Filter r.cur = outer(o.cur)       =>   conditions   r.cur = outer(o.cur)
 *         +- rates r                             versions     rates r
 * }}}
 *
 * @param outputs
 *   the output columns of the subquery
 * @param isLimited
 *   whether the subquery returns one row
 * @param versions
 *   the remaining plan; all expressions read its columns and the columns of the left row
 */
private[analysis] final case class VersionSubquery(
    outputs: Seq[NamedExpression],
    isLimited: Boolean,
    order: Seq[SortOrder],
    conditions: Seq[Expression],
    versions: LogicalPlan)
    extends PredicateHelper {
  import VersionSubquery._

  /** Removes the nodes above the versions, if they only select a version. */
  private def decomposed: Option[VersionSubquery] = versions match {
    case Project(columns, child) if columns.forall(isPlain) && belongsToQuery(versions) =>
      withoutProject(columns, child).decomposed
    case GlobalLimit(IntegerLiteral(1), LocalLimit(IntegerLiteral(1), child)) if !isLimited =>
      copy(isLimited = true, versions = child).decomposed
    case Sort(sorted, true, child, _) if isLimited && order.isEmpty =>
      copy(order = sorted, versions = child).decomposed
    case Filter(condition, child)
        if order.nonEmpty && condition.deterministic && belongsToQuery(versions) =>
      val more = splitConjunctivePredicates(condition)
      copy(conditions = conditions ++ more, versions = child).decomposed
    case _ if order.nonEmpty && !belongsToQuery(versions) => Some(this)
    case _ => None
  }

  /** Replaces a projection's columns by their expressions. */
  private def withoutProject(
      columns: Seq[NamedExpression],
      child: LogicalPlan): VersionSubquery = {
    val aliases = AttributeMap(columns.collect { case alias: Alias =>
      alias.toAttribute -> alias
    })
    val computed: PartialFunction[Expression, Expression] = {
      case column: Attribute if aliases.contains(column) => aliases(column).child
    }
    VersionSubquery(
      outputs.map {
        case column: Attribute if aliases.contains(column) =>
          val alias = aliases(column)
          Alias(alias.child, alias.name)(column.exprId, column.qualifier)
        case output => replaced(output, computed)
      },
      isLimited,
      order.map(replaced(_, computed)),
      conditions.map(replaced(_, computed)),
      child)
  }

  /**
   * Replaces outer references by plain columns of the left row, and renames versions' columns
   * with the same ids.
   */
  private def beside(left: LogicalPlan): VersionSubquery = {
    val renamed = AttributeMap(versions.output.filter(left.outputSet.contains).map { column =>
      column -> Alias(column, column.name)()
    })
    val plain: PartialFunction[Expression, Expression] = {
      case OuterReference(column) => column.toAttribute
      case column: Attribute if renamed.contains(column) => renamed(column).toAttribute
    }
    VersionSubquery(
      outputs.map(replaced(_, plain)),
      isLimited,
      order.map(replaced(_, plain)),
      conditions.map(replaced(_, plain)),
      if (renamed.isEmpty) versions
      else Project(versions.output.map(c => renamed.getOrElse(c, c)), versions))
  }
}

private[analysis] object VersionSubquery {

  /**
   * Returns the decomposed subquery `plan` of a lateral join with `left`, if an order selects the
   * version.
   */
  def apply(plan: LogicalPlan, left: LogicalPlan): Option[VersionSubquery] =
    VersionSubquery(plan.output, isLimited = false, Nil, Nil, plan).decomposed.map(_.beside(left))

  /** Whether an expression depends only on its row, deterministically. */
  def isPlain(expression: Expression): Boolean =
    expression.deterministic && !expression.exists(_.isInstanceOf[SubqueryExpression])

  /** Whether a plan contains the selection of a version, or reads the left row. */
  private def belongsToQuery(plan: LogicalPlan): Boolean = plan.exists {
    case _: GlobalLimit => true
    case node => node.expressions.exists(_.containsPattern(OUTER_REFERENCE))
  }

  private def replaced[E <: Expression](
      expression: E,
      rule: PartialFunction[Expression, Expression]): E =
    expression.transform(rule).asInstanceOf[E]
}
