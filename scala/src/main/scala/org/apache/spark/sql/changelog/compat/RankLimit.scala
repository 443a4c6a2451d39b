// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.catalyst.expressions.{Expression, SortOrder}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.window.{Partial, WindowGroupLimitExec}

/** Leaves behind in each task the rows that can't have a rank up to `limit` among all rows. */
object RankLimit {
  def apply(order: Seq[SortOrder], rank: Expression, limit: Int, rows: SparkPlan): SparkPlan =
    WindowGroupLimitExec(Nil, order, rank, limit, Partial, rows)
}
