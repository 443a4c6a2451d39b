// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan, Offset}
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.plans.{FromChangelog, SkipRows, ToChangelog}

/**
 * Lets `OFFSET` pass the check of streams, which finds it without asking whether its input is one.
 * {{{
 *   ToChangelog streaming           ToChangelog streaming
 *   +- GlobalLimit 3                +- GlobalLimit 3
 *      +- Offset 2           =>        +- SkipRows 2
 *         +- Sort [fare]                  +- Sort [fare]
 * }}}
 */
object AcceptOffset extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      plan.transformDown {
        case root: ToChangelog if root.streaming =>
          root.withNewChildren(root.children.map(accept))
      }
    }

  /** Below `from_changelog` a stream is Spark's own, and into subqueries the check does not look. */
  private def accept(plan: LogicalPlan): LogicalPlan = plan match {
    case _: FromChangelog => plan
    case Offset(count, child) => SkipRows(count, accept(child))
    case other => other.mapChildren(accept)
  }
}
