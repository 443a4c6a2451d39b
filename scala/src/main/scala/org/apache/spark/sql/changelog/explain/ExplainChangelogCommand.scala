// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.{Row, SparkSession}

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.analysis.{
  CheckRowOrder,
  LowerSources,
  RecognizeLookupJoin,
  RecognizeTemporalJoin,
  ResolvePassingTime
}
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.functions.ToChangelogFunction
import org.apache.spark.sql.changelog.microbatch.StatePartitions
import org.apache.spark.sql.changelog.plans.{
  ChangelogOutput,
  ExplainNode,
  FromChangelog,
  ToChangelog
}

/**
 * Shows how a query would be kept up to date: `EXPLAIN CHANGELOG`.
 *
 * A query without `to_changelog` is explained as if its changes were asked for in retract mode.
 * Tables take the place of streams, so a query can be explained before there is a stream.
 *
 * @param query
 *   the query as parsed
 */
case class ExplainChangelogCommand(query: LogicalPlan, format: ExplainFormat)
    extends LeafRunnableCommand {

  override val output: Seq[Attribute] =
    Seq(AttributeReference("plan", StringType, nullable = false)())

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = castToImpl(sparkSession)
    val analyzed = session.sessionState.executePlan(query).analyzed
    val changes = analyzed match {
      case query if query.exists(_.isInstanceOf[ToChangelog]) => query
      case query => ToChangelogFunction(query, OutputMode.Retract, Nil)
    }
    val streamed = changes.transformDownWithSubqueries {
      case root: ToChangelog => root.copy(streaming = true, explainOnly = true)
      case source: FromChangelog => source.copy(streaming = true)
    }
    val lowered = LowerSources(streamed)
    CheckRowOrder(lowered)
    // what only a changelog's query is analyzed by
    val timed = ResolvePassingTime(lowered)
    val joined = RecognizeTemporalJoin(RecognizeLookupJoin(timed))
    val explained = session.sessionState.optimizer.execute(joined).collect {
      case output: ChangelogOutput => withPartitions(session, output.explained)
    }
    format(explained).map(Row(_))
  }

  private def withPartitions(session: classic.SparkSession, root: ExplainNode): ExplainNode =
    StatePartitions.byCores(session).fold(root) { number =>
      val reason = s"is kept in $number partitions, one for each core, as nothing else is set " +
        s"(${ChangelogConf.STATE_PARTITIONS.key})"
      root.copy(reasons = root.reasons :+ reason)
    }
}
