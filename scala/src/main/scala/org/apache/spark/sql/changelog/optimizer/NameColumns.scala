// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, ExprId}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * Calls columns that Spark has given a second name by the first again.
 * {{{
 *   Join LeftSemi, city = city#7                  Join LeftSemi, city = city
 *   :- rides                                =>    :- rides
 *   +- Project [city#3 AS city#7]                 +- Project [city#3 AS city]
 * }}}
 * Where both sides of a subquery's join read one table, Spark puts an expression's id into the name,
 * and a number of its own into that of an expression it computes once. State is read back by name,
 * and these are others at each start. Leaves the columns of the result as they are called.
 */
object NameColumns extends Rule[LogicalPlan] {
  private val WithId = """(.+)#\d+.*""".r
  private val Common = """_common_expr_\d+""".r

  override def apply(plan: LogicalPlan): LogicalPlan = {
    val names = renamed(plan)
    if (names.isEmpty) plan
    else {
      plan.transformAllExpressions {
        case column: Attribute if names.contains(column.exprId) =>
          column.withName(names(column.exprId))
        case alias: Alias if names.contains(alias.exprId) =>
          alias.copy(name = names(alias.exprId))(
            alias.exprId,
            alias.qualifier,
            alias.explicitMetadata,
            alias.nonInheritableMetadataKeys)
      }
    }
  }

  private def renamed(plan: LogicalPlan): Map[ExprId, String] = {
    val results = plan.outputSet
    val aliases = plan.collect { case node => node.expressions }.flatten.collect {
      case alias: Alias if !results.contains(alias.toAttribute) => alias
    }
    val withId = aliases.collect { case alias @ Alias(_, WithId(name)) => alias.exprId -> name }
    val common = aliases.filter(alias => Common.matches(alias.name)).map(_.exprId).distinct
    val numbered = common.zipWithIndex.map { case (id, index) => id -> s"_common_expr_$index" }
    (withId ++ numbered).toMap
  }
}
