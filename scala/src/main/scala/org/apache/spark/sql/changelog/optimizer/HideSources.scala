// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * Keeps rules from what lies below `from_changelog`: rows of a stream, which Spark runs. A limit
 * there is one of the stream, not of the table.
 * {{{
 *   FromChangelog                FromChangelog               FromChangelog
 *   +- GlobalLimit 3     =>      +- HiddenRows       =>      +- GlobalLimit 3
 *      +- words                                                 +- words
 * }}}
 */
private[optimizer] object HideSources {

  /** What `rules` make of `plan`, with what its sources read as it was. */
  def during(plan: LogicalPlan)(rules: LogicalPlan => LogicalPlan): LogicalPlan =
    rules(plan.transformUp {
      case source: FromChangelog if source.streaming =>
        source.copy(child = HiddenRows(source.child))
    }).transformUp { case source: FromChangelog => source.mapChildren(shown) }

  private def shown(plan: LogicalPlan): LogicalPlan = plan match {
    case HiddenRows(hidden) => hidden
    case other => other
  }
}
