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

/** An analyzed query, and how its changes are kept if it reads any. */
class KeptQuery(session: SparkSession, kind: ViewKind, val plan: LogicalPlan) {

  /** Whether it reads a stream, whose changes can be followed. */
  lazy val isStreaming: Boolean = toChangelog(OutputMode.Retract).streaming

  /** Its columns that identify a row, if any are known to: those by which rows are replaced. */
  lazy val key: Option[Seq[String]] = {
    val keys = output.upsertKeys.filter(SinkInput.isComparable)
    val chosen = if (keys.isEmpty) None else explained(mode(hasKey = true)).key
    chosen.orElse(keys.headOption).filter(SinkInput.isComparable).map(_.map(_.name))
  }

  /** How its changes are kept, as EXPLAIN tells. */
  lazy val output: ChangelogOutput = {
    val output = explained(mode(hasKey = false))
    // it has no reader who could ask for other changes
    val explanation =
      Explanation(output.explanation.mode)(output.explained.copy(warnings = Nil))
    output.copy(explanation = explanation)
  }

  private def explained(mode: OutputMode): ChangelogOutput =
    optimized(toChangelog(mode).copy(explainOnly = true, streaming = true))

  def mode(hasKey: Boolean): OutputMode = kind.mode(hasKey)

  /** Its changes, in the form its storage takes them. */
  def changes: DataFrame = Dataset.ofRows(session, toChangelog(mode(key.isDefined)))

  /** Its changes as a sink gets them. Refuses a query that can't be kept, as starting it would. */
  def sinkInput: SinkInput = {
    val root = changes.queryExecution.analyzed.collectFirst { case root: ToChangelog => root }
    val plan = optimized(root.get)
    val input = SinkInput(kind.toString, plan.output, plan)
    input.keyOrNone(None)
    input
  }

  private def toChangelog(mode: OutputMode): ToChangelog = ToChangelogFunction(plan, mode, Nil)

  private def optimized(changes: ToChangelog): ChangelogOutput = {
    val analyzed = session.sessionState.executePlan(changes).analyzed
    session.sessionState.optimizer
      .execute(LowerSources(analyzed))
      .collectFirst { case output: ChangelogOutput => output }
      .get
  }
}
