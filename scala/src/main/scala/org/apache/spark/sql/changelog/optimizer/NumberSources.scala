// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.ExprId
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Tells the sources of a query apart, and the readings of one from readings of others.
 *
 * A common table expression is put in place with the columns it has, so that readings of one source
 * have the same columns. It goes by them and not by what lies below: a batch that brings nothing
 * makes all sources of the same columns equal, and what a query keeps must not depend on that. Runs
 * before [[SeparateSources]].
 */
object NumberSources extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    val numbers = mutable.Map.empty[Seq[ExprId], Int]
    plan.transformUp {
      case source: FromChangelog if source.streaming =>
        val columns = source.output.map(_.exprId)
        source.copy(number = numbers.getOrElseUpdate(columns, numbers.size + 1))
    }
  }
}
