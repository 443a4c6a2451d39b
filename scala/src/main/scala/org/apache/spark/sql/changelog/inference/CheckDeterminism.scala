// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction
import org.apache.spark.sql.catalyst.expressions.{
  Expression,
  UserDefinedExpression,
  WindowFunction
}
import org.apache.spark.sql.catalyst.plans.logical.Sample

import org.apache.spark.sql.changelog.inference.nodes.InferredNode
import org.apache.spark.sql.changelog.plans.{FromChangelog, PassingTime, TemporalFilter}

/**
 * Refuses an expression whose value depends on when it is computed: on chance, or on what time it is.
 * What it made of a row could not be found again if the row is taken back; a batch that is run again
 * would give other rows; and batch Spark gives all rows the time of today. Conditions on the time
 * that a [[TemporalFilter]] keeps up with are fine.
 *
 * Functions of the user that are declared non-deterministic are called once where rows only come; so
 * they are refused for an input that changes, and for results that the node itself takes back. They
 * are refused, too, where what they gave is kept, or decides what is: a batch that is run again would
 * keep other rows than those that were emitted, as with `SELECT DISTINCT guess(a)`. In what is
 * emitted and then forgotten they are fine.
 * Functions that call themselves non-deterministic because Spark doesn't define in which order they
 * see rows (`first`, `collect_list`) are not meant.
 */
object CheckDeterminism {
  def apply(node: InferredNode): Unit = node.plan match {
    case _: TemporalFilter =>
    case _: Sample =>
      throw InferenceErrors.nondeterministicExpression(node.plan, "a random sample")
    case plan => plan.expressions.flatMap(culprit).foreach(refuse(node, _))
  }

  /**
   * Refuses functions of the user whose results any operator above keeps, or the one they are in. One
   * over groups of rows that is called once, when its group is over, keeps rows and gives results.
   */
  def ofKept(root: AnnotatedPlan, isKeptAbove: Boolean = false): Unit = root.plan match {
    case _: FromChangelog =>
    case plan =>
      val keepsRows = root.state.nonEmpty
      root.children.foreach(ofKept(_, isKeptAbove || keepsRows))
      val isCalledOnce = GroupedMap.unapply(plan).isDefined && root.mode.isInsertOnly
      if (isKeptAbove || keepsRows && !isCalledOnce) {
        plan.expressions.flatMap(chance).foreach { culprit =>
          throw InferenceErrors.nondeterministicExpression(plan, DescribeNode.expression(culprit))
        }
      }
  }

  private def refuse(node: InferredNode, culprit: Expression): Unit = {
    val text = DescribeNode.expression(culprit)
    culprit match {
      case _: PassingTime => throw InferenceErrors.passingTime(node.plan, text)
      case _: UserDefinedExpression if !(node.children :+ node).exists(_.kinds.changesRows) =>
      case _ => throw InferenceErrors.nondeterministicExpression(node.plan, text)
    }
  }

  private def culprit(expression: Expression): Option[Expression] =
    expression.collectFirst { case time: PassingTime => time }.orElse(chance(expression))

  private def chance(expression: Expression): Option[Expression] =
    if (expression.deterministic) {
      None
    } else {
      expression.children
        .flatMap(chance)
        .headOption
        .orElse(expression match {
          case _: UserDefinedExpression => Some(expression)
          case _: AggregateFunction | _: WindowFunction => None
          case blamed if blamed.children.forall(_.deterministic) => Some(blamed)
          case _ => None
        })
    }
}
