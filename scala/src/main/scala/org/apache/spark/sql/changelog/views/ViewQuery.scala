// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.analysis.{LowerSources, ResolvePassingTime}
import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.functions.ToChangelogFunction
import org.apache.spark.sql.changelog.plans.{ChangelogOutput, RowTtl, ToChangelog}
import org.apache.spark.sql.changelog.sinks.SinkInput

/**
 * The query of a view, in a session of its own that has the settings the view was made with and,
 * as long as the view's own session lives, its temporary views.
 */
class ViewQuery(creator: SparkSession, val definition: ViewDefinition) {
  val session: SparkSession = ViewQuery.sessionFor(creator, definition)
  private val reader = new ViewReader(session)

  /** The query as a table, whose streams are still streams. */
  lazy val analyzed: LogicalPlan = {
    val parsed = session.sessionState.sqlParser.parsePlan(definition.query)
    val plan = session.sessionState.analyzer.execute(reader.replaceViews(parsed))
    if (!plan.resolved) session.sessionState.analyzer.checkAnalysis(plan)
    InlineCTE(alwaysInline = true)(plan)
  }

  /** Whether it reads a view of that name. */
  def reads(view: TableIdentifier): Boolean = analyzed.resolved && reader.views.contains(view)

  lazy val schema: StructType = analyzed.schema.asNullable

  /** Whether it reads a stream, whose changes can be followed. */
  lazy val isStreaming: Boolean = toChangelog(OutputMode.Retract).streaming

  /** Whether its rows change as time passes. */
  lazy val readsTime: Boolean = forgetsRows || ResolvePassingTime.readsTime(analyzed)

  /** Whether rows leave it for when they came, which nobody knows later. */
  lazy val forgetsRows: Boolean =
    analyzed.collectWithSubqueries { case hint: RowTtl => hint }.nonEmpty

  /** Its columns that identify a row, if any are known to: those by which rows are replaced. */
  lazy val key: Option[Seq[String]] = {
    val keys = output.upsertKeys
    val chosen = if (keys.isEmpty) None else explained(mode(hasKey = true)).key
    chosen.orElse(keys.headOption).map(_.map(_.name))
  }

  /** How its changes are kept, as EXPLAIN tells. */
  lazy val output: ChangelogOutput = explained(mode(hasKey = false))

  private def explained(mode: OutputMode): ChangelogOutput =
    optimized(toChangelog(mode).copy(explainOnly = true, streaming = true))

  def mode(hasKey: Boolean): OutputMode = ViewKind.mode(definition.kind, hasKey)

  /** Its changes, in the form its storage takes them. */
  def changes: DataFrame = Dataset.ofRows(session, toChangelog(mode(key.isDefined)))

  /** Its rows, now; only of a query that reads no stream. */
  def rows: DataFrame = Dataset.ofRows(session, analyzed)

  /** Refuses a query that can't be kept, as starting it would. */
  def check(): this.type = {
    if (isStreaming) {
      val root = changes.queryExecution.analyzed.collectFirst { case root: ToChangelog => root }
      val input = optimized(root.get)
      SinkInput(definition.kind.toString, input.output, input).keyOrNone(None)
    } else if (definition.kind == ViewKind.StreamingTable ||
      definition.policy == RefreshPolicy.Incremental) {
      throw ViewErrors.notIncremental(definition.kind.toString, definition.query)
    } else rows.queryExecution.assertAnalyzed()
    this
  }

  private def toChangelog(mode: OutputMode): ToChangelog =
    ToChangelogFunction(analyzed, mode, Nil)

  private def optimized(changes: ToChangelog): ChangelogOutput = {
    val plan = session.sessionState.executePlan(changes).analyzed
    session.sessionState.optimizer
      .execute(LowerSources(plan))
      .collectFirst { case output: ChangelogOutput => output }
      .get
  }
}

object ViewQuery {
  def sessionFor(creator: SparkSession, definition: ViewDefinition): SparkSession = {
    val session = creator.cloneSession()
    definition.settings.foreach { case (key, value) =>
      if (session.sessionState.conf.isModifiable(key)) session.conf.set(key, value)
    }
    val manager = session.sessionState.catalogManager
    definition.namespace.headOption.foreach(manager.setCurrentCatalog)
    manager.setCurrentNamespace(definition.namespace.drop(1).toArray)
    creator.streams.listListeners().foreach(session.streams.addListener)
    session
  }
}
