// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, NamedExpression, PythonUDF}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Project}

import org.apache.spark.sql.changelog.compat.SparkRules

/**
 * Calls scalar functions of Python below or above an aggregate, not within it.
 * {{{
 *   Aggregate [f(a)], [f(a), sum(g(b))]   =>   Aggregate [fa], [fa, sum(gb)]
 *   +- t [a, b]                                +- Project [a, b, f(a) AS fa, g(b) AS gb]
 *                                                 +- t [a, b]
 * }}}
 * Spark does so to aggregates of its own, when ours have taken their place.
 */
private[optimizer] object PullOutPythonFunctions {

  def apply(plan: LogicalPlan): LogicalPlan =
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
