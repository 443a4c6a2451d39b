// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import org.apache.spark.sql.ExtendedExplainGenerator
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper

import org.apache.spark.sql.changelog.execution.output.ChangelogOutputExec

/**
 * Adds the changelog modes of a query to Spark's own EXPLAIN.
 *
 * Enable it with `spark.sql.extendedExplainProviders`.
 */
class ChangelogExplainGenerator extends ExtendedExplainGenerator with AdaptiveSparkPlanHelper {

  override def title: String = "Changelog"

  /** Spark writes the heading in any case. */
  override def generateExtendedInfo(plan: SparkPlan): String = {
    val trees = collect(plan) { case output: ChangelogOutputExec => output.explained.toText }
    if (trees.isEmpty) "none: the query has no to_changelog\n" else trees.mkString("\n")
  }
}
