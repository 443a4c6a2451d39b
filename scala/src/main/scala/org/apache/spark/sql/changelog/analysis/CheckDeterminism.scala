// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction
import org.apache.spark.sql.catalyst.expressions.{
  Expression,
  UserDefinedExpression,
  WindowFunction
}
import org.apache.spark.sql.catalyst.plans.logical.Sample

import org.apache.spark.sql.changelog.analysis.inference.InferredNode
import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Refuses an expression that may give another value for a row that is taken back than it gave when
 * the row came: what it made then could never be found again. That concerns rows of an input that
 * changes, and results that the node itself takes back. Over insert-only rows anything else goes.
 *
 * Functions that call themselves non-deterministic because Spark doesn't define in which order
 * they see rows (`first`, `collect_list`) are not meant.
 */
object CheckDeterminism {
  def apply(node: InferredNode): Unit =
    // what a source computes it computes once, when the change arrives
    if (!node.plan.isInstanceOf[FromChangelog])
      (node.children :+ node)
        .find(_.kinds.changesRows)
        .foreach(refuseRandomness(node, _))

  private def refuseRandomness(node: InferredNode, changing: InferredNode): Unit = {
    val sampled = node.plan match {
      case _: Sample => Some("a random sample")
      case _ => None
    }
    val blamed = node.plan.expressions.flatMap(culprit).map(DescribeNode.expression)
    (blamed ++ sampled).headOption.foreach { expression =>
      throw InferenceErrors.nondeterministicExpression(node.plan, expression, changing)
    }
  }

  private def culprit(expression: Expression): Option[Expression] =
    if (expression.deterministic) {
      None
    } else {
      expression.children
        .flatMap(culprit)
        .headOption
        .orElse(expression match {
          case _: UserDefinedExpression => Some(expression)
          case _: AggregateFunction | _: WindowFunction => None
          case blamed if blamed.children.forall(_.deterministic) => Some(blamed)
          case _ => None
        })
    }
}
