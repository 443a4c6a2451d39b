// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, View}
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumns.{
  CURRENT_DEFAULT_COLUMN_METADATA_KEY,
  EXISTS_DEFAULT_COLUMN_METADATA_KEY
}
import org.apache.spark.sql.catalyst.util.removeInternalMetadata
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.types.{MetadataBuilder, StructType}

import org.apache.spark.sql.changelog.analysis.ResolvePassingTime
import org.apache.spark.sql.changelog.compat.{BorrowedListeners, SparkRules}
import org.apache.spark.sql.changelog.connectors.delta.Delta
import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.evolution.Evolution
import org.apache.spark.sql.changelog.identity.RecordedSettings
import org.apache.spark.sql.changelog.plans.ChangelogOutput
import org.apache.spark.sql.changelog.sinks.SinkInput
import org.apache.spark.sql.changelog.sources.ArrivalDependence
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshotData
import org.apache.spark.sql.changelog.sources.tables.FollowedWay

/**
 * The query of a view, in a session of its own that has the settings the view was made with and,
 * as long as the view's own session lives, its temporary views.
 */
class ViewQuery(creator: SparkSession, val definition: ViewDefinition) {
  val session: SparkSession = ViewQuery.sessionFor(creator, definition)
  private val reader = new ViewReader(session)
  private val follower = new TableFollower(session, definition.keepsCopies, reader)
  private val listeners = new BorrowedListeners(creator, session)

  /** The query as it is written, in which tables are as they are, and common tables where they are named. */
  private lazy val resolved: LogicalPlan = session.withActive {
    val catalog = session.sessionState.catalog
    definition.temporaryViews.flatMap(_.find(catalog.getRawTempView(_).isEmpty)).foreach { name =>
      throw new NoSuchTableException(Seq(name))
    }
    val parsed = session.sessionState.sqlParser.parsePlan(definition.query)
    val plan = session.sessionState.analyzer.execute(reader.replaceViews(parsed))
    if (!plan.resolved) session.sessionState.analyzer.checkAnalysis(plan)
    plan
  }

  private lazy val written: LogicalPlan = SparkRules.inlineCommonTables(resolved)

  /** The views it reads by their changes. */
  def views: Set[TableIdentifier] = if (written.resolved) reader.views else Set.empty

  /**
   * The temporary views that its names stand for, also in each other's queries. One that a data frame has made
   * holds what it reads, whatever becomes of the names.
   */
  def temporaryViews: Seq[String] = temporaryViewsIn(resolved).distinct

  private def temporaryViewsIn(plan: LogicalPlan): Seq[String] = {
    val own = plan match {
      case view: View if view.isTempView && !reader.isOfView(view) =>
        Seq(view.desc.identifier).filter(_.database.isEmpty).map(_.table)
      case _ => Nil
    }
    val below = plan match {
      case view: View if view.isTempViewStoringAnalyzedPlan => Nil
      case stream: StreamingRelation => InitialSnapshotData.rowsOf(stream).toSeq
      case other => other.children ++ other.subqueries
    }
    own ++ below.flatMap(temporaryViewsIn)
  }

  /** Whether it reads a view of that name. */
  def reads(view: TableIdentifier): Boolean = views.contains(view)

  /** Why it isn't computed anew unasked: then rows would be gone, or others. None if it can be. */
  def whyNotRecomputable: Option[String] = streams.headOption
    .map(stream => s"the stream $stream may have forgotten what it has sent")
    .orElse(Option.when(rowsDependOnTheirTime) {
      "its rows depend on when they came, by ROW_TTL, lookup or a table that is not followed"
    })
    .orElse(Option.when(definition.kind == ViewKind.StreamingTable) {
      "rows of a streaming table stay, also those that a view which it reads no longer has"
    })

  /** The streams that are neither tables which are followed nor views. */
  def streams: Seq[String] = streamsRead(analyzed).distinct

  private def streamsRead(plan: LogicalPlan): Seq[String] = plan match {
    case view if reader.isOfView(view) => Nil
    case stream: StreamingRelation if follower.made(stream) => Nil
    case stream: StreamingRelation =>
      Seq(stream.dataSource.catalogTable.fold(stream.sourceName)(_.identifier.quotedString))
    case stream: StreamingRelationV2 =>
      Seq(stream.identifier.fold(stream.sourceName)(_.toString))
    case leaf: LeafNode if leaf.isStreaming => Seq(leaf.nodeName)
    case other => (other.children ++ other.subqueries).flatMap(streamsRead)
  }

  private def keep(plan: LogicalPlan) = new KeptQuery(session, definition.kind, plan)

  /** The query whose tables are followed, or why it is taken as it is written. */
  private lazy val following: Either[Seq[String], KeptQuery] =
    if (!definition.followsTables || definition.policy == RefreshPolicy.Full) Left(Nil)
    else {
      val query = keep(follower(written))
      val unknown = follower.others.map { case (table, reason) => s"$table: $reason" }
      if (follower.followed.isEmpty && !query.isStreaming) Left(unknown)
      else if (keep(written).isStreaming) Right(query)
      else if (unknown.nonEmpty) Left(unknown)
      else if (definition.policy.isIncremental) Right(query)
      else
        try {
          query.sinkInput
          Right(query)
        } catch { case error: AnalysisException => Left(Seq(error.getMessage)) }
    }

  /** Why its tables aren't followed. */
  def obstacles: Seq[String] = following.left.getOrElse(Nil)

  /** The tables that are followed. */
  def followed: Seq[FollowedWay] = if (following.isRight) follower.followed else Nil

  /** Tables that are read as they are when rows meet them, and why. */
  def unfollowed: Seq[(String, String)] = {
    following
    follower.others
  }

  /** The query as a table, whose streams are still streams. */
  def analyzed: LogicalPlan = kept.plan

  private lazy val kept: KeptQuery = following.getOrElse(keep(written))

  /** Without defaults, which are those of sources. */
  lazy val schema: StructType =
    StructType(removeInternalMetadata(analyzed.schema.asNullable).map { field =>
      val metadata = new MetadataBuilder()
        .withMetadata(field.metadata)
        .remove(CURRENT_DEFAULT_COLUMN_METADATA_KEY)
        .remove(EXISTS_DEFAULT_COLUMN_METADATA_KEY)
      field.copy(metadata = metadata.build())
    })

  /** Whether it reads a stream, whose changes can be followed. */
  def isStreaming: Boolean = kept.isStreaming

  /** Whether its rows change as time passes. */
  lazy val readsTime: Boolean = forgetsRows || ResolvePassingTime.readsTime(analyzed)

  /** Whether rows leave it for when they came, which nobody knows later. */
  lazy val forgetsRows: Boolean =
    rowsOfTheirTime.contains(ArrivalDependence.ExpiresByAge)

  /** Whether its rows are those of the time they came at: computed anew, they would be others. */
  def rowsDependOnTheirTime: Boolean = rowsOfTheirTime.exists {
    case _: ArrivalDependence.ReadsUntrackedTable => isStreaming
    case _ => true
  }

  private def rowsOfTheirTime: Seq[ArrivalDependence] =
    analyzed.collectWithSubqueries { case ArrivalDependence(why) => why }

  /** Its columns that identify a row, if any are known to: those by which rows are replaced. */
  def key: Option[Seq[String]] = kept.key

  /** How its changes are kept, as EXPLAIN tells. */
  def output: ChangelogOutput = kept.output

  /** Its changes, in the form its storage takes them. */
  def changes: DataFrame = kept.changes

  /** How it goes on with the state of another query. Refuses what can't. */
  def evolutionFrom(before: KeptView): Evolution =
    new Evolution(session, before.definition.checkpoint, changes.queryExecution.analyzed)

  /** Starts a query in its session, of which the listeners of the session that made it hear. */
  def start(query: => StreamingQuery): StreamingQuery = listeners.start(query)

  /** Its rows, now; only of a query that reads no stream. */
  def rows: DataFrame = Dataset.ofRows(session, analyzed)

  /** Its changes as a sink gets them. */
  def sinkInput: SinkInput = kept.sinkInput

  /** Refuses a query that can't be kept, as starting it would. */
  def check(): this.type = {
    if (isStreaming) sinkInput
    else if (definition.kind == ViewKind.StreamingTable || definition.policy.isIncremental) {
      throw notIncremental(definition.kind.toString)
    } else rows.queryExecution.assertAnalyzed()
    this
  }

  /** The error that the query reads nothing whose changes can be followed. */
  def notIncremental(view: String): AnalysisException =
    ViewErrors.notIncremental(view, definition.query, obstacles)
}

object ViewQuery {
  def sessionFor(creator: SparkSession, definition: ViewDefinition): SparkSession = {
    val session = creator.cloneSession()
    definition.settings.foreach { case (key, value) =>
      if (session.sessionState.conf.isModifiable(key)) session.conf.set(key, value)
    }
    RecordedSettings.forgetMeaning(session.sessionState.conf, definition.settings.keySet)
    definition.temporaryViews.foreach(keepOnly(session, _))
    session.conf.set(RefuseViewWrites.Allowed, value = true)
    // what a statement had in place of ${...} is in the text already
    session.conf.set(SQLConf.VARIABLE_SUBSTITUTE_ENABLED.key, value = false)
    // what was in a file that is gone would be missing among what has changed
    session.conf.set(SQLConf.IGNORE_MISSING_FILES.key, value = false)
    // versions that were noted are read as long as their files are there
    session.conf.set(Delta.RefusesOldVersions, value = false)
    Delta.limitLogTasks(session)
    val manager = session.sessionState.catalogManager
    definition.namespace.headOption.foreach(manager.setCurrentCatalog)
    manager.setCurrentNamespace(definition.namespace.drop(1).toArray)
    session
  }

  /** What else the session calls so would hide what the query reads. */
  private def keepOnly(session: SparkSession, temporaryViews: Seq[String]): Unit = {
    val catalog = session.sessionState.catalog
    val resolver = session.sessionState.conf.resolver
    val others = catalog.listLocalTempViews("*").map(_.table).filterNot { name =>
      temporaryViews.exists(resolver(_, name))
    }
    others.foreach(catalog.dropTempView)
  }
}
