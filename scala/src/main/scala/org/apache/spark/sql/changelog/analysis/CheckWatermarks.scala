// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.plans.logical.{EventTimeWatermark, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.EVENT_TIME_WATERMARK

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.plans.{FromChangelog, ToChangelog}

/**
 * Refuses a watermark on a table that is kept by a stream of changes.
 *
 * Spark gives watermarks to streams, and takes one on a table away without a word, in its last
 * batch of analysis rules. This rule runs before that, among the resolution rules. It changes
 * nothing.
 */
object CheckWatermarks extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (plan.containsPattern(EVENT_TIME_WATERMARK)) {
      plan.foreach {
        case watermark: EventTimeWatermark
            if watermark.resolved && isOverTable(watermark.child) =>
          throw ChangelogErrors.watermarkOnTable(watermark.eventTime.name)
        case _ =>
      }
    }
    plan
  }

  private def isOverTable(plan: LogicalPlan): Boolean = plan match {
    case source: FromChangelog => source.child.isStreaming
    case _: ToChangelog => false
    case other => other.children.exists(isOverTable)
  }
}
