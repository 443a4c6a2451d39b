// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import org.apache.spark.sql.ExtendedExplainGenerator
import org.apache.spark.sql.changelog.execution.output.ChangelogOutputExec
import org.apache.spark.sql.execution.SparkPlan

/**
 * Adds the changelog modes of a query to Spark's own EXPLAIN.
 *
 * Enable it with `spark.sql.extendedExplainProviders`.
 */
class ChangelogExplainGenerator extends ExtendedExplainGenerator {

  override def title: String = "Changelog"

  override def generateExtendedInfo(plan: SparkPlan): String =
    plan.collect { case output: ChangelogOutputExec => output.explained.toText }.mkString("\n")
}
