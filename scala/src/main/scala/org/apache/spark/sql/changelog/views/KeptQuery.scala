// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.analysis.LowerSources
import org.apache.spark.sql.changelog.functions.ToChangelogFunction
import org.apache.spark.sql.changelog.plans.{ChangelogOutput, Explanation, ToChangelog}
import org.apache.spark.sql.changelog.sinks.SinkInput

/** KeptQuery: an analyzed query, and the way to keep its result current if the query reads changes. */
class KeptQuery(session: SparkSession, definition: ViewDefinition, val plan: LogicalPlan) {

  /** Whether the query reads a stream of changes. */
  lazy val isStreaming: Boolean = toChangelog(OutputMode.Retract).streaming

  /** The key columns, if known. The view replaces rows by these columns. */
  lazy val key: Option[Seq[String]] = {
    val keys = output.upsertKeys.filter(SinkInput.isComparable)
    val chosen = if (keys.isEmpty) None else explained(mode(hasKey = true)).key
    chosen.orElse(keys.headOption).filter(SinkInput.isComparable).map(_.map(_.name))
  }

  /** The plan of the changes, as shown by EXPLAIN. */
  lazy val output: ChangelogOutput = {
    val output = explained(mode(hasKey = false))
    // Warnings advise readers to ask for different changes. A view's storage cannot.
    val explanation =
      Explanation(output.explanation.mode)(output.explained.copy(warnings = Nil))
    output.copy(explanation = explanation)
  }

  private def explained(mode: OutputMode): ChangelogOutput =
    optimized(toChangelog(mode).copy(explainOnly = true, streaming = true))

  def mode(hasKey: Boolean): OutputMode = definition.mode(hasKey)

  /** The changes in the form required by the view's storage. */
  lazy val changes: DataFrame = Dataset.ofRows(session, toChangelog(mode(key.isDefined)))

  /** The changes as a sink receives them. Rejects a query that would fail at start. */
  lazy val sinkInput: SinkInput = {
    val root = changes.queryExecution.analyzed.collectFirst { case root: ToChangelog => root }
    val plan = optimized(root.get)
    val input = SinkInput(definition.kind.toString, plan.output, plan)
    input.keyOrNone(None)
    input
  }

  private def toChangelog(mode: OutputMode): ToChangelog =
    ToChangelogFunction(plan, mode, Nil, definition.emission)

  private def optimized(changes: ToChangelog): ChangelogOutput = {
    val analyzed = session.sessionState.executePlan(changes).analyzed
    session.sessionState.optimizer
      .execute(LowerSources(analyzed))
      .collectFirst { case output: ChangelogOutput => output }
      .get
  }
}
