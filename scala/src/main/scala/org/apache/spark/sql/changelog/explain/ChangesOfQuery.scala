// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.analysis.{
  CheckRowOrder,
  LowerSources,
  RecognizeLookupJoin,
  RecognizeTemporalJoin,
  ResolvePassingTime
}
import org.apache.spark.sql.changelog.functions.ToChangelogFunction
import org.apache.spark.sql.changelog.plans.{FromChangelog, ToChangelog}

/**
 * The changes of a query as they would be kept if all that it reads by `from_changelog` came as a
 * stream, with or without `to_changelog`: without it, as if they were asked for in retract mode.
 */
private[explain] object ChangesOfQuery {

  /**
   * @param query
   *   the query as parsed
   * @param change
   *   what else becomes of its roots and sources
   */
  def apply(session: SparkSession, query: LogicalPlan)(
      change: PartialFunction[LogicalPlan, LogicalPlan]): LogicalPlan = {
    val analyzed = session.sessionState.executePlan(query).analyzed
    val changes = analyzed match {
      case query if query.exists(_.isInstanceOf[ToChangelog]) => query
      case query => ToChangelogFunction(query, OutputMode.Retract, Nil)
    }
    val lowered = LowerSources(changes.transformDownWithSubqueries {
      case root: ToChangelog => root.copy(streaming = true)
      case source: FromChangelog => source.copy(streaming = true)
    })
    CheckRowOrder(lowered)
    // what only a changelog's query is analyzed by
    val timed = ResolvePassingTime(lowered)
    RecognizeTemporalJoin(RecognizeLookupJoin(timed)).transformDownWithSubqueries(change)
  }
}
