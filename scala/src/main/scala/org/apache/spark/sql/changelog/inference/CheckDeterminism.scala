// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction
import org.apache.spark.sql.catalyst.expressions.{
  Expression, UserDefinedExpression, WindowFunction
}
import org.apache.spark.sql.catalyst.plans.logical.Sample

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.inference.nodes.InferredNode
import org.apache.spark.sql.changelog.plans.{FromChangelog, PassingTime, TemporalFilter}

/**
 * Rejects expressions with a value that depends on chance or on the time of the evaluation. The
 * problems of nondeterministic expressions:
 *
 *   - A retraction computes another value than the insert, and the inserted row is not found.
 *   - A repeated batch emits different rows.
 *   - The batch query evaluates all rows at today's time.
 *
 * Conditions on the current time in a [[TemporalFilter]] are supported.
 *
 * Nondeterministic user functions are evaluated once per row over insert-only input. The check
 * rejects three cases:
 *
 *   - The input changes.
 *   - The node itself retracts results.
 *   - State keeps the result, or the result decides about state, as in `SELECT DISTINCT
 *     guess(a)`. A repeated batch would store rows different from the emitted rows.
 *
 * Emitted results without state are fine. Some functions, such as `first` and `collect_list`, are
 * nondeterministic only because Spark defines no order of rows. The check ignores these
 * functions.
 */
object CheckDeterminism {
  def apply(node: InferredNode): Unit = node.plan match {
    case _: TemporalFilter =>
    case _: Sample =>
      throw analysis(
        "CHANGELOG_NONDETERMINISTIC_EXPRESSION",
        "expression" -> "a random sample",
        "node" -> DescribeNode.short(node.plan))
    case plan => plan.expressions.flatMap(unstablePart).foreach(refuse(node, _))
  }

  /**
   * Rejects user functions whose results are stored, by their own operator or by an operator
   * above. A grouped map function called once, at the end of the group, is exempt: its operator
   * stores rows and emits results.
   */
  def ofKept(root: AnnotatedPlan, isKeptAbove: Boolean = false): Unit = root.plan match {
    case _: FromChangelog =>
    case plan =>
      val keepsRows = root.state.nonEmpty
      root.children.foreach(ofKept(_, isKeptAbove || keepsRows))
      val isCalledOnce = GroupedMap.unapply(plan).isDefined && root.mode.isInsertOnly
      if (isKeptAbove || keepsRows && !isCalledOnce) {
        plan.expressions.flatMap(nondeterministicPart).foreach { unstablePart =>
          throw analysis(
            "CHANGELOG_NONDETERMINISTIC_EXPRESSION",
            "expression" -> DescribeNode.expression(unstablePart),
            "node" -> DescribeNode.short(plan))
        }
      }
  }

  private def refuse(node: InferredNode, unstablePart: Expression): Unit = {
    val text = DescribeNode.expression(unstablePart)
    unstablePart match {
      case _: PassingTime =>
        throw analysis(
          "CHANGELOG_PASSING_TIME",
          "expression" -> text,
          "node" -> DescribeNode.short(node.plan))
      case _: UserDefinedExpression if !(node.children :+ node).exists(_.kinds.changesRows) =>
      case _ =>
        throw analysis(
          "CHANGELOG_NONDETERMINISTIC_EXPRESSION",
          "expression" -> text,
          "node" -> DescribeNode.short(node.plan))
    }
  }

  private def unstablePart(expression: Expression): Option[Expression] =
    expression
      .collectFirst { case time: PassingTime => time }
      .orElse(nondeterministicPart(expression))

  private def nondeterministicPart(expression: Expression): Option[Expression] =
    if (expression.deterministic) {
      None
    } else {
      expression.children
        .flatMap(nondeterministicPart)
        .headOption
        .orElse(expression match {
          case _: UserDefinedExpression => Some(expression)
          case _: AggregateFunction | _: WindowFunction => None
          case blamed if blamed.children.forall(_.deterministic) => Some(blamed)
          case _ => None
        })
    }
}
