// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.times

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{InnerLike, LeftSemi}

import org.apache.spark.sql.changelog.inference.nodes.InferredNode
import org.apache.spark.sql.changelog.plans.FromChangelog

/** Direction: the way in which updates of a row move a column. */
sealed trait Direction

object Direction {
  case object Constant extends Direction
  case object Up extends Direction
  case object Down extends Direction
}

/**
 * Monotonicity: finds the direction in which updates move columns. Operators may drop a row that
 * later rows can only displace. A count over insert-only input grows, a minimum falls, and a
 * group's columns are constant.
 *
 * A node with deletes guarantees nothing, because a deleted row may return with any value.
 */
object Monotonicity {
  import Direction._

  /** Whether an update of a row of `node` never moves the row back in `order`. */
  def onlyImproves(node: InferredNode, order: SortOrder): Boolean =
    directionOf(node, order.child).exists {
      case Constant => true
      case direction =>
        // An update from NULL to a value must not move a row back either.
        val nullsAreWorst = order.nullOrdering == NullsLast || !order.child.nullable
        nullsAreWorst && direction == (if (order.direction == Descending) Up else Down)
    }

  /** Returns the direction in which updates of `node` move `expression`, if known. */
  def directionOf(node: InferredNode, expression: Expression): Option[Direction] =
    if (node.kinds.delete) None
    else if (node.kinds.isInsertOnly || expression.foldable) Some(Constant)
    else
      expression match {
        case column: Attribute => ofColumn(node, column)
        case _ if expression.deterministic && isConstant(node, expression) => Some(Constant)
        case _ => None
      }

  private def isConstant(node: InferredNode, expression: Expression): Boolean =
    expression.references.forall(ofColumn(node, _).contains(Constant))

  private def ofColumn(node: InferredNode, column: Attribute): Option[Direction] =
    node.plan match {
      case _ if node.kinds.isInsertOnly => Some(Constant)
      case source: FromChangelog => if (source.key.exists(same(column))) Some(Constant) else None
      case project: Project =>
        project.projectList.find(same(column)).flatMap {
          case alias: Alias => directionOf(node.child, alias.child)
          case other => directionOf(node.child, other)
        }
      case filter: Filter =>
        if (isConstant(node.child, filter.condition)) ofColumn(node.child, column) else None
      case agg: Aggregate => ofAggregate(agg, node.child, column)
      case Join(_, _, _: InnerLike | LeftSemi, condition, _) =>
        ofJoined(node, condition, column)
      case _: EventTimeWatermark | _: RepartitionOperation | _: RebalancePartitions | _: Sort =>
        ofColumn(node.child, column)
      case _ => None
    }

  /**
   * An update may make the condition false, and a later one true. The row then disappears and
   * returns.
   */
  private def ofJoined(
      join: InferredNode,
      condition: Option[Expression],
      column: Attribute): Option[Direction] =
    if (condition.forall(_.references.forall(c => ofInput(join, c).contains(Constant)))) {
      ofInput(join, column)
    } else {
      None
    }

  private def ofInput(join: InferredNode, column: Attribute): Option[Direction] =
    join.children.find(_.plan.outputSet.contains(column)).flatMap(directionOf(_, column))

  /** Groups over insert-only input: an aggregate updates without deletes only there. */
  private def ofAggregate(
      agg: Aggregate,
      input: InferredNode,
      column: Attribute): Option[Direction] =
    if (!input.kinds.isInsertOnly) None
    else
      agg.aggregateExpressions.find(same(column)).flatMap {
        case Alias(AggregateExpression(function, _, _, filter, _), _) =>
          function match {
            case _: Count | _: Max => Some(Up)
            case _: Min => Some(Down)
            case Sum(summand, context) if context.evalMode == EvalMode.ANSI =>
              ofSum(agg, summand, filter)
            case _ => None
          }
        case Alias(expression, _) => if (isOverGroups(agg, expression)) Some(Constant) else None
        case expression => if (isOverGroups(agg, expression)) Some(Constant) else None
      }

  /** The summands must have one sign, by a filter. */
  private def ofSum(
      agg: Aggregate,
      summand: Expression,
      filter: Option[Expression]): Option[Direction] = {
    val known = agg.child.constraints ++ filter.toSeq.flatMap(conjuncts)
    def isBounded(value: Expression, bound: Expression): Boolean =
      value.semanticEquals(summand) && bound.foldable
    def compare(a: Expression, b: Expression): Boolean = GreaterThanOrEqual(a, b).eval() == true
    known.collectFirst {
      case GreaterThanOrEqual(v, low) if isBounded(v, low) && compare(low, zero(low)) => Up
      case GreaterThan(v, low) if isBounded(v, low) && compare(low, zero(low)) => Up
      case LessThanOrEqual(v, high) if isBounded(v, high) && compare(zero(high), high) => Down
      case LessThan(v, high) if isBounded(v, high) && compare(zero(high), high) => Down
    }
  }

  private def zero(like: Expression): Literal = Literal.default(like.dataType)

  private def conjuncts(condition: Expression): Seq[Expression] = condition match {
    case And(a, b) => conjuncts(a) ++ conjuncts(b)
    case e => Seq(e)
  }

  private def isOverGroups(agg: Aggregate, expression: Expression): Boolean =
    agg.groupingExpressions.exists(_.semanticEquals(expression)) || expression.foldable

  private def same(column: Attribute)(other: NamedExpression): Boolean =
    other.exprId == column.exprId
}
