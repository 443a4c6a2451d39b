// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import java.util.Locale

import org.json4s.jackson.JsonMethods.{pretty, render}

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.{ExtendedExplainGenerator, Row, SparkSession => AnySession}

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.analysis._
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.execution.output.ChangelogOutputExec
import org.apache.spark.sql.changelog.execution.{RunningPlans, RunningQuery}
import org.apache.spark.sql.changelog.functions.ToChangelogFunction
import org.apache.spark.sql.changelog.microbatch.StatePartitions
import org.apache.spark.sql.changelog.plans._

/** A statement that shows queries in an [[ExplainFormat]], with one row per text. */
trait ExplainCommand extends LeafRunnableCommand {
  override val output: Seq[Attribute] =
    Seq(AttributeReference("plan", StringType, nullable = false)())
}

/**
 * Shows the incremental plan of a query: `EXPLAIN CHANGELOG`.
 *
 * Static tables may stand for streams, so a query can be explained before its streams exist.
 *
 * @param query
 *   the query as parsed
 */
case class ExplainChangelogCommand(query: LogicalPlan, format: ExplainFormat)
    extends ExplainCommand {

  override def run(sparkSession: AnySession): Seq[Row] = {
    val session = castToImpl(sparkSession)
    val changes = ChangesOfQuery(session, query) { case root: ToChangelog =>
      root.copy(explainOnly = true)
    }
    val explained = session.sessionState.optimizer.execute(changes).collect {
      case output: ChangelogOutput => withPartitions(session, output.explained)
    }
    format(explained).map(Row(_))
  }

  /** Adds the number of state partitions to a plan, if the extension chose the number. */
  def withPartitions(session: SparkSession, root: ExplainNode): ExplainNode =
    StatePartitions.byCores(session).fold(root) { number =>
      val reason = s"state in $number partitions, one for each core (the default of " +
        s"${ChangelogConf.STATE_PARTITIONS.key})"
      root.copy(reasons = root.reasons :+ reason)
    }
}

/**
 * Shows the plan of a running query with the numbers of the last batch: `EXPLAIN CHANGELOG
 * QUERY`.
 *
 * @param name
 *   the query's name, its id or its run id
 */
case class ExplainQueryCommand(name: String, format: ExplainFormat) extends ExplainCommand {

  override def run(sparkSession: AnySession): Seq[Row] = {
    val query = RunningPlans.find(name).getOrElse {
      val names = RunningPlans.all.filter(_.isActive).map(query => query.name.getOrElse(query.id))
      throw analysis("CHANGELOG_QUERY_NOT_FOUND", "name" -> name, "running" -> names.sorted)
    }
    format(query).map(Row(_))
  }
}

/**
 * ChangesOfQuery: the streaming form of a query. Every source read by `from_changelog` becomes a
 * stream. A query without `to_changelog` gets one in retract mode.
 */
private[explain] object ChangesOfQuery {

  /**
   * @param query
   *   the query as parsed
   * @param change
   *   a further change of roots and sources
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
    // Rules that analyze only the query of a changelog.
    val timed = ResolvePassingTime(lowered)
    RecognizeTemporalJoin(RecognizeLookupJoin(timed)).transformDownWithSubqueries(change)
  }
}

/**
 * Adds the changelog modes of a query to Spark's own EXPLAIN.
 *
 * Enable the provider with `spark.sql.extendedExplainProviders`.
 */
class ChangelogExplainGenerator extends ExtendedExplainGenerator with AdaptiveSparkPlanHelper {

  override def title: String = "Changelog"

  /** Spark prints the heading even without a tree. */
  override def generateExtendedInfo(plan: SparkPlan): String = {
    val trees = collect(plan) { case output: ChangelogOutputExec => output.explained.toText }
    if (trees.isEmpty) "none: the query has no to_changelog\n" else trees.mkString("\n")
  }
}

/** A form of EXPLAIN CHANGELOG: text, a JSON tree, or a picture. */
sealed trait ExplainFormat {

  /** Formats a query that does not run, with one row per tree. */
  def apply(trees: Seq[ExplainNode]): Seq[String]

  /** Formats a running query. */
  def apply(query: RunningQuery): Seq[String]
}

object ExplainFormat {

  case class Text(verbose: Boolean) extends ExplainFormat {
    override def apply(trees: Seq[ExplainNode]): Seq[String] = trees.map(_.toText(verbose))

    override def apply(query: RunningQuery): Seq[String] =
      Seq((LastBatch(query).lines ++ apply(query.trees)).mkString("\n"))
  }

  case object Json extends ExplainFormat {
    override def apply(trees: Seq[ExplainNode]): Seq[String] = trees.map(_.toJson)

    override def apply(query: RunningQuery): Seq[String] = {
      val batch = LastBatch(query).toJson
      query.trees.map(tree =>
        pretty(render(tree.json.copy(obj = tree.json.obj :+ ("query" -> batch)))))
    }
  }

  case object Html extends ExplainFormat {
    override def apply(trees: Seq[ExplainNode]): Seq[String] = Seq(PlanPage(trees))

    override def apply(query: RunningQuery): Seq[String] = Seq(PlanPage(query))
  }

  case object Svg extends ExplainFormat {
    override def apply(trees: Seq[ExplainNode]): Seq[String] =
      trees.map(tree => PlanPage.text(PlanPicture(tree.folded)))

    override def apply(query: RunningQuery): Seq[String] = apply(query.trees)
  }

  /** Returns the form named by a word of the statement. */
  def apply(name: String): ExplainFormat = name.toUpperCase(Locale.ROOT) match {
    case "TEXT" => Text(verbose = false)
    case "VERBOSE" => Text(verbose = true)
    case "JSON" => Json
    case "HTML" => Html
    case "SVG" => Svg
  }
}
