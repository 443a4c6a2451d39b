// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.plans.LookupTable

/**
 * The SQL table function `lookup`: a table as it is when rows are joined with it.
 *
 * {{{
 *   SELECT ... FROM orders JOIN lookup(TABLE(rates)) r ON orders.cur = r.cur
 * }}}
 *
 * Each row of `orders` is joined once, with the rates after the batch it comes in. What happens to
 * rates later does not change it.
 */
object LookupFunction {
  val Name = "lookup"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(Name, "Joins each row once, with a table as it is then")(build)

  private def build(expressions: Seq[Expression]): LogicalPlan =
    LookupTable(new FunctionArguments(Name, Nil, expressions).source)
}
