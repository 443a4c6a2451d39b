// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.status

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{
  FunctionSignature,
  LogicalPlan,
  NamedParametersSupport
}
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.functions.FunctionArguments

/**
 * The SQL table function `changelog_status`: what each operator of each query that runs in this
 * application did in the last batch, and what it keeps.
 *
 * {{{
 *   SELECT query, operator, state_rows FROM changelog_status() ORDER BY state_bytes DESC
 * }}}
 */
object ChangelogStatusFunction {
  val Name = "changelog_status"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(
      Name,
      "What the operators of running queries did in their last batch")(build)

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    NamedParametersSupport
      .defaultRearrange(FunctionSignature(Nil), expressions, Name, SQLConf.get.resolver)
    StatusRows(StatusColumns.attributes)
  }
}
