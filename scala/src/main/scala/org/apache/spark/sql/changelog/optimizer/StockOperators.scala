// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.plans.logical._

import org.apache.spark.sql.changelog.compat.SparkRules

/**
 * Counts the operators of a plan that keep state of Spark's own making, below `from_changelog` or
 * above `to_changelog`.
 *
 * Spark numbers those from 0 when it has planned a batch, after ours have got their ids. One that is
 * counted here and not planned leaves a number free.
 */
private[optimizer] object StockOperators {
  def count(plan: LogicalPlan): Long = plan
    .collect {
      case node if SparkRules.keepsState(node) => node
      case limit: GlobalLimit if limit.isStreaming => limit
      case deduplicated: Deduplicate if deduplicated.isStreaming => deduplicated
    }
    .size
    .toLong
}
