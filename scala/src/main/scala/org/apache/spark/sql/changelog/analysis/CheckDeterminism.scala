// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions.{Expression, UserDefinedExpression, WindowFunction}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Sample}
import org.apache.spark.sql.changelog.analysis.inference.InferredNode

/**
 * Refuses an expression that may give another value for the row that is taken back than it gave
 * when the row came: what it made then could never be found again. Over insert-only input nothing
 * is taken back, and anything goes.
 *
 * Functions that call themselves non-deterministic because Spark doesn't define in which order
 * they see rows (`first`, `collect_list`) are not meant.
 */
object CheckDeterminism {
  def apply(plan: LogicalPlan, inputs: Seq[InferredNode]): Unit =
    inputs.find(_.kinds.changesRows).foreach { input =>
      plan.expressions.flatMap(culprit).headOption.foreach { expression =>
        throw InferenceErrors.nondeterministicExpression(
          plan,
          DescribeNode.expression(expression),
          input)
      }
      plan match {
        case _: Sample =>
          throw InferenceErrors.nondeterministicExpression(plan, "a random sample", input)
        case _ =>
      }
    }

  private def culprit(expression: Expression): Option[Expression] =
    if (expression.deterministic) {
      None
    } else {
      expression.children.flatMap(culprit).headOption.orElse(expression match {
        case _: UserDefinedExpression => Some(expression)
        case _: AggregateFunction | _: WindowFunction => None
        case blamed if blamed.children.forall(_.deterministic) => Some(blamed)
        case _ => None
      })
    }
}
