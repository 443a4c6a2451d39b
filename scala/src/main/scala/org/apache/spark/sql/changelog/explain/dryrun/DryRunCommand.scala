// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain.dryrun

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.{Row, SparkSession}

import org.apache.spark.sql.changelog.explain.{ChangesOfQuery, ExplainCommand, ExplainFormat}
import org.apache.spark.sql.changelog.plans.{ToChangelog, WatchedChanges}

/**
 * Shows what each node of a query sends when some rows come: `EXPLAIN CHANGELOG … DRY RUN OVER …`.
 *
 * @param query
 *   the query as parsed
 */
case class DryRunCommand(query: LogicalPlan, sample: Sample, format: ExplainFormat)
    extends ExplainCommand {

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = castToImpl(sparkSession)
    val changes = ChangesOfQuery(session, query) { case root: ToChangelog =>
      root.copy(watched = Some(new WatchedChanges))
    }
    format(DryRun(session, sample.in(session, changes))).map(Row(_))
  }
}
