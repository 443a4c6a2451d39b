// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, View}
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumns.{
  CURRENT_DEFAULT_COLUMN_METADATA_KEY, EXISTS_DEFAULT_COLUMN_METADATA_KEY
}
import org.apache.spark.sql.catalyst.util.removeInternalMetadata
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.types.{MetadataBuilder, StructType}

import org.apache.spark.sql.changelog.analysis.ResolvePassingTime
import org.apache.spark.sql.changelog.checkpoint.CheckpointFiles
import org.apache.spark.sql.changelog.compat.{ForwardedListeners, SparkRules}
import org.apache.spark.sql.changelog.connectors.delta.Delta
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.evolution.Evolution
import org.apache.spark.sql.changelog.functions.HistoryFunction
import org.apache.spark.sql.changelog.identity.RecordedSettings
import org.apache.spark.sql.changelog.plans.{ChangelogOutput, Emission}
import org.apache.spark.sql.changelog.sinks.SinkInput
import org.apache.spark.sql.changelog.sources.ArrivalDependence
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshotData
import org.apache.spark.sql.changelog.sources.tables.TableTracking

/**
 * ViewQuery: the query of a view, in a separate session with the view's settings. While the creating session lives, the
 * session also has its temporary views.
 */
class ViewQuery(creator: SparkSession, val definition: ViewDefinition) {
  val session: SparkSession = ViewQuery.sessionFor(creator, definition)
  private val reader = new ViewReader(session)
  private val follower = new TableFollower(session, definition.keepsCopies, reader)
  private val listeners = new ForwardedListeners(creator, session)

  /** The analyzed query as written, before tables are followed and common table expressions are inlined. */
  private lazy val resolved: LogicalPlan = session.withActive {
    val catalog = session.sessionState.catalog
    definition.temporaryViews.flatMap(_.find(catalog.getRawTempView(_).isEmpty)).foreach { name =>
      throw new NoSuchTableException(Seq(name))
    }
    val parsed = session.sessionState.sqlParser.parsePlan(definition.query)
    val query = reader.replaceViews(parsed)
    val versions = definition.history.fold(query)(HistoryFunction.call(query, _))
    val plan = session.sessionState.analyzer.execute(versions)
    if (!plan.resolved) session.sessionState.analyzer.checkAnalysis(plan)
    plan
  }

  private lazy val written: LogicalPlan = SparkRules.inlineCommonTables(resolved)

  /** Returns the upstream views whose changes the query reads. */
  def views: Set[TableIdentifier] = if (written.resolved) reader.views else Set.empty

  /**
   * Returns the temporary views named in the query, also through other temporary views. A temporary view of a data
   * frame holds an analyzed plan, independent of names.
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

  /** Returns whether the query reads a view of this name. */
  def reads(view: TableIdentifier): Boolean = views.contains(view)

  /**
   * Returns why the view is never recomputed automatically, because rows could disappear or change. Returns None if
   * recomputation is safe.
   */
  def whyNotRecomputable: Option[String] = streams.headOption
    .map(stream => s"The stream $stream may no longer store all of its earlier rows.")
    .orElse(Option.when(dependsOnArrivalTime) {
      "The rows depend on their arrival time, by ROW_TTL, by lookup, by a history by commit or by an unfollowed table."
    })
    .orElse(Option.when(definition.kind == ViewKind.StreamingTable) {
      "A streaming table keeps its rows, even if an upstream view has deleted them."
    })
    .orElse(Option.when(definition.emission != Emission.Changes) {
      s"The property ${ViewDefinition.Emit} holds back rows that a recomputation would show."
    })

  /** Returns the streams other than followed tables and views. */
  def streams: Seq[String] = streamsRead(analyzed).distinct

  private def streamsRead(plan: LogicalPlan): Seq[String] = plan match {
    case view if reader.isOfView(view) => Nil
    case stream: StreamingRelation if follower.readsFollowedTable(stream) => Nil
    case stream: StreamingRelation =>
      Seq(stream.dataSource.catalogTable.fold(stream.sourceName)(_.identifier.quotedString))
    case stream: StreamingRelationV2 =>
      Seq(stream.identifier.fold(stream.sourceName)(_.toString))
    case leaf: LeafNode if leaf.isStreaming => Seq(leaf.nodeName)
    case other => (other.children ++ other.subqueries).flatMap(streamsRead)
  }

  private def keep(plan: LogicalPlan) = new KeptQuery(session, definition, plan)

  /** The query with followed tables, or the reasons to read the tables as written. */
  private lazy val following: Either[Seq[String], KeptQuery] =
    if (!definition.followsTables || definition.policy == RefreshPolicy.Full) Left(Nil)
    else {
      val query = keep(follower(written))
      val unknown = follower.unfollowed.map { case (table, reason) => s"$table: $reason" }
      if (follower.followed.isEmpty && !query.isStreaming) Left(unknown)
      else if (keep(written).isStreaming) Right(query)
      else if (unknown.nonEmpty) Left(unknown)
      else if (definition.policy.isIncremental || definition.keepsCommits) Right(query)
      else
        try {
          query.sinkInput
          Right(query)
        } catch { case error: AnalysisException => Left(Seq(error.getMessage)) }
    }

  /** Returns why the query's tables are not followed. */
  def obstacles: Seq[String] = following.left.getOrElse(Nil)

  /** Returns the followed tables. */
  def followed: Seq[TableTracking] = if (following.isRight) follower.followed else Nil

  /** Returns the unfollowed tables, each with the reason. Arriving rows meet the table's version at this time. */
  def unfollowed: Seq[(String, String)] = {
    following
    follower.unfollowed
  }

  /** Returns the query as a table, with its streams still streaming. */
  def analyzed: LogicalPlan = kept.plan

  private lazy val kept: KeptQuery = following.getOrElse(keep(written))

  /** The columns without default values, which belong to the sources. */
  lazy val schema: StructType =
    StructType(removeInternalMetadata(analyzed.schema.asNullable).map { field =>
      val metadata = new MetadataBuilder()
        .withMetadata(field.metadata)
        .remove(CURRENT_DEFAULT_COLUMN_METADATA_KEY)
        .remove(EXISTS_DEFAULT_COLUMN_METADATA_KEY)
      field.copy(metadata = metadata.build())
    })

  /** Returns whether the query reads a stream of changes. */
  def isStreaming: Boolean = kept.isStreaming

  /** Whether rows of the query change as time passes. */
  lazy val readsTime: Boolean = expiresRows || ResolvePassingTime.readsTime(analyzed)

  /** Whether rows disappear some time after their arrival. A recomputation does not know the arrival time. */
  lazy val expiresRows: Boolean =
    arrivalDependences.contains(ArrivalDependence.ExpiresByAge)

  /** Whether rows have the time of the refresh that brought them. */
  lazy val keepsCommits: Boolean = arrivalDependences.contains(ArrivalDependence.KeepsCommits)

  /** Returns whether rows depend on their arrival time. A recomputation would give different rows. */
  def dependsOnArrivalTime: Boolean = arrivalDependences.exists {
    case _: ArrivalDependence.ReadsUntrackedTable => isStreaming
    case _ => true
  }

  private def arrivalDependences: Seq[ArrivalDependence] =
    analyzed.collectWithSubqueries { case ArrivalDependence(why) => why }

  /** Returns the key columns, if known. The view replaces rows by these columns. */
  def key: Option[Seq[String]] = kept.key

  /** Returns the plan of the changes, as shown by EXPLAIN. */
  def output: ChangelogOutput = kept.output

  /** Returns the changes in the form required by the view's storage. */
  def changes: DataFrame = kept.changes

  /** Returns how the query continues with the state of another query. Rejects an impossible continuation. */
  def evolutionFrom(before: MaterializedView): Evolution =
    new Evolution(session, before.definition.checkpoint, changes.queryExecution.analyzed)

  /** Starts a streaming query in this session, and reports events to the listeners of the creating session. */
  def start(query: => StreamingQuery): StreamingQuery = listeners.start(query)

  /** Returns the current rows of a query without streams. */
  def rows: DataFrame = Dataset.ofRows(session, analyzed)

  /** Returns the changes as a sink receives them. */
  def sinkInput: SinkInput = kept.sinkInput

  /** Rejects a query that would fail at start. */
  def check(): this.type = {
    if (isStreaming) sinkInput
    else if (definition.kind == ViewKind.StreamingTable || definition.policy.isIncremental) {
      throw notIncremental(definition.kind.toString)
    } else rows.queryExecution.assertAnalyzed()
    this
  }

  /** Returns the error of a statement that would recompute a history by commit. */
  def notRecomputable(view: TableIdentifier, statement: String): AnalysisException =
    analysis("CHANGELOG_HISTORY_NOT_RECOMPUTABLE", "view" -> view, "action" -> statement)

  /** Returns the error for a query without a source of changes. */
  def notIncremental(view: String): AnalysisException =
    analysis(
      "CHANGELOG_VIEW_NOT_INCREMENTAL",
      "view" -> view,
      "query" -> definition.query,
      "reasons" -> (if (obstacles.isEmpty)
                      "the query reads neither a stream nor a followed table"
                    else obstacles.mkString("; ")))
}

object ViewQuery {
  def sessionFor(creator: SparkSession, definition: ViewDefinition): SparkSession = {
    val session = creator.cloneSession()
    definition.settings.foreach { case (key, value) =>
      if (session.sessionState.conf.isModifiable(key)) session.conf.set(key, value)
    }
    RecordedSettings.resetToDefaults(session.sessionState.conf, definition.settings.keySet)
    definition.temporaryViews.foreach(keepOnly(session, _))
    session.conf.set(RefuseViewWrites.Allowed, value = true)
    // Spark's file managers replace the offsets of another process where renames are not atomic.
    if (!session.sessionState.conf.contains(CheckpointFiles.Setting)) {
      session.conf.set(CheckpointFiles.Setting, classOf[CheckpointFiles].getName)
    }
    // Spark's cache of file lists keeps the lists of each session that looked up a table.
    session.conf.set(SQLConf.HIVE_FILESOURCE_PARTITION_FILE_CACHE_SIZE.key, 0L)
    // The text already contains the values of `${...}`.
    session.conf.set(SQLConf.VARIABLE_SUBSTITUTE_ENABLED.key, value = false)
    // Rows of a missing file would be missing from the changes.
    session.conf.set(SQLConf.IGNORE_MISSING_FILES.key, value = false)
    // Recorded versions are readable as long as their files exist.
    session.conf.set(Delta.RefusesOldVersions, value = false)
    Delta.limitLogTasks(session)
    val manager = session.sessionState.catalogManager
    definition.namespace.headOption.foreach(manager.setCurrentCatalog)
    manager.setCurrentNamespace(definition.namespace.drop(1).toArray)
    session
  }

  /** Drops further temporary views, which would hide the tables read by the query. */
  private def keepOnly(session: SparkSession, temporaryViews: Seq[String]): Unit = {
    val catalog = session.sessionState.catalog
    val resolver = session.sessionState.conf.resolver
    val others = catalog.listLocalTempViews("*").map(_.table).filterNot { name =>
      temporaryViews.exists(resolver(_, name))
    }
    others.foreach(catalog.dropTempView)
  }
}
