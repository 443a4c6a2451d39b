// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.analysis

import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan}

import org.apache.spark.sql.changelog.compat.NearestBy
import org.apache.spark.sql.changelog.inference.InferenceErrors
import org.apache.spark.sql.changelog.plans.{FromChangelog, ToChangelog}

/**
 * Refuses `JOIN ... NEAREST BY` over a stream: Spark gives each left row a random number to tell it
 * from others, and could not find it again when it is taken back. Looks at the analyzed query, in
 * which it still is a join of its own.
 */
object CheckNearestBy extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit =
    AnalysisHelper.allowInvokingTransformsInAnalyzer(LowerSources(plan)).foreach {
      case root: ToChangelog if root.streaming =>
        root.child.foreachWithSubqueries {
          case join @ NearestBy() if FromChangelog.streamsIn(join) =>
            throw InferenceErrors.nodeNotSupported(
              join,
              "Spark tells the rows of its left side apart by random numbers",
              "Join with the nearest rows of each by JOIN LATERAL (SELECT ... ORDER BY ... LIMIT n).")
          case _ =>
        }
      case _ =>
    }
}
