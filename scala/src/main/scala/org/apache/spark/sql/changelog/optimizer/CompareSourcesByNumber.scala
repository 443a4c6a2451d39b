// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Lets plans be compared by which sources they read, as `ReadSourcesOnce` has told them apart.
 * Only now: until then plans are also compared with those of other queries, whose sources have numbers
 * of their own.
 */
object CompareSourcesByNumber extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case source: FromChangelog => source.copy(isKnownByNumber = true)
  }
}
