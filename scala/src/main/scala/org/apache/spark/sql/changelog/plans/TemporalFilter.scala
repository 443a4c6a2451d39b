// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.expressions.{And, Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/**
 * Keeps the rows that meet conditions on the time. Present only between normalization and rewriting; a plan is never executed with it.
 *
 * @param conditions
 *   as [[org.apache.spark.sql.changelog.inference.times.TemporalCondition]] makes them
 */
case class TemporalFilter(conditions: Seq[Expression], child: LogicalPlan) extends UnaryNode {

  def condition: Expression = conditions.reduce(And(_, _))

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): TemporalFilter =
    copy(child = newChild)
}
