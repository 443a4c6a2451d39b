// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lineage

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.{Row, SparkSession}

import org.apache.spark.sql.changelog.compat.SparkRules

/**
 * Shows the rows behind all rows of a query's result, as its tables are now: `WHY SELECT …`.
 *
 * @param query
 *   the query as parsed
 */
case class WhyCommand(query: LogicalPlan) extends LeafRunnableCommand {

  override val output: Seq[Attribute] = TracedNode.output.map(_.newInstance())

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = castToImpl(sparkSession)
    val analyzed = session.sessionState.executePlan(query)
    analyzed.assertAnalyzed()
    val plan = SparkRules.inlineCommonTables(analyzed.analyzed)
    new TraceRows(session)(plan).flatMap(_.toRows)
  }
}
