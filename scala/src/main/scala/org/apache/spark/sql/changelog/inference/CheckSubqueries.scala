// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}

import org.apache.spark.sql.changelog.inference.nodes.StaticInference

/**
 * Refuses a subquery over a changelog that is still an expression: executed as one it would see
 * what changed in a batch, not what is there. Those that can be joins are joins by now. A subquery
 * over something static is left to Spark.
 */
object CheckSubqueries {
  def apply(plan: LogicalPlan): Unit = {
    plan match {
      // Spark joins it with what is around the other one, where the columns it reads are not
      case join: Join if join.missingInput.nonEmpty =>
        throw InferenceErrors.subqueryNotSupported(plan, "a predicate beside a correlated one")
      case _ =>
    }
    plan.expressions.flatMap(subqueries).find(s => !StaticInference.isStatic(s.plan)).foreach {
      subquery => throw InferenceErrors.subqueryNotSupported(plan, subquery.prettyName)
    }
  }

  private def subqueries(expression: Expression): Seq[SubqueryExpression] =
    expression.collect { case subquery: SubqueryExpression => subquery }
}
