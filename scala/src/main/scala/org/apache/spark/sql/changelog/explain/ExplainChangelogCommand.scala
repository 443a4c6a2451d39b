// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.{Row, SparkSession}

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.microbatch.StatePartitions
import org.apache.spark.sql.changelog.plans.{ChangelogOutput, ExplainNode, ToChangelog}

/**
 * Shows how a query would be kept up to date: `EXPLAIN CHANGELOG`.
 *
 * Tables take the place of streams, so a query can be explained before there is a stream.
 *
 * @param query
 *   the query as parsed
 */
case class ExplainChangelogCommand(query: LogicalPlan, format: ExplainFormat)
    extends ExplainCommand {

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = castToImpl(sparkSession)
    val changes = ChangesOfQuery(session, query) { case root: ToChangelog =>
      root.copy(explainOnly = true)
    }
    val explained = session.sessionState.optimizer.execute(changes).collect {
      case output: ChangelogOutput => withPartitions(session, output.explained)
    }
    format(explained).map(Row(_))
  }

  /** A plan that also says in how many partitions state is kept, where that is chosen. */
  def withPartitions(session: classic.SparkSession, root: ExplainNode): ExplainNode =
    StatePartitions.byCores(session).fold(root) { number =>
      val reason = s"is kept in $number partitions, one for each core, as nothing else is set " +
        s"(${ChangelogConf.STATE_PARTITIONS.key})"
      root.copy(reasons = root.reasons :+ reason)
    }
}
