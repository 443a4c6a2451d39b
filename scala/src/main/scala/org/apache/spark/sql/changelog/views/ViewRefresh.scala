// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.{StreamingQuery, Trigger}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{AnalysisException, Row}

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.compat.{OneBatch, RunningStream, StreamLogs}
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.sources.KafkaBrokers
import org.apache.spark.sql.changelog.sources.tables.{SharedVersions, TableVersion}
import org.apache.spark.sql.changelog.views.cost.{CheaperRefresh, ViewInputs}
import org.apache.spark.sql.changelog.views.history.{
  RefreshError, RefreshHistory, RefreshReason, RefreshReport
}

/**
 * ViewRefresh: brings a view up to date, incrementally, in full, or continuously.
 *
 * @param query
 *   the query of the view, analyzed and planned once
 */
class ViewRefresh(session: SparkSession, view: MaterializedView, query: ViewQuery) {
  def this(session: SparkSession, view: MaterializedView) =
    this(session, view, new ViewQuery(session, view.definition))

  // Storage works in the query's session, like the query's sink.
  private val storage = ViewStorage(query.session, view)
  private val history = RefreshHistory.ofView(session, view)
  private val cheaper = new CheaperRefresh(session, view, query)

  /** Refreshes by the view's policy, or by the policy `asked` for. */
  def refresh(asked: Option[RefreshPolicy]): Unit =
    RefreshPools.within(session)(SharedVersions.within(session)(refreshBy(asked)))

  private def refreshBy(asked: Option[RefreshPolicy]): Unit = {
    RunningViews.checkNone(view)
    val takesColumns =
      view.definition.takesColumns && !asked.contains(RefreshPolicy.Strict) && hasOtherColumns
    if (takesColumns) {
      val layout = DeltaLayout.of(session, view, query.schema)
      new ViewRefresh(session, view.copy(schema = query.schema, layout = layout))
        .evolve(view, RefreshReason.OtherColumns)
    } else refreshSame(asked)
  }

  private def refreshSame(asked: Option[RefreshPolicy]): Unit = {
    // A process that ended during CREATE may have begun a batch. The batch ends at the data delivered then.
    val wasRefreshed = history.lastSuccess.nonEmpty ||
      new BatchLogs(session, view.definition.checkpoint).lastBegun.nonEmpty
    history.remember { report =>
      SharedVersions.began(session).foreach(report.isAsOf)
      val policy = asked.getOrElse(view.definition.policy)
      val isFull =
        policy == RefreshPolicy.Full || !query.isStreaming && !policy.isIncremental
      val why =
        if (history.last.isEmpty) RefreshReason.New
        else if (asked.isDefined) "asked for"
        else reason
      report.isFor(if (isFull || !wasRefreshed && defersState) "full" else "incremental", why)
      if (!isFull && !query.isStreaming) throw query.notIncremental(view.sql)
      if (isFull && query.keepsCommits) {
        throw if (query.isStreaming) query.notRecomputable(view.name, "REFRESH FULL")
        else query.notIncremental(view.sql)
      }
      checkSchema()
      if (isFull) compute(Replacement.AllRows, report)
      else {
        checkWriters()
        follow(wasRefreshed, policy, report)
        // The next refresh names a commit by others that landed during this refresh.
        if (!report.isShown) {
          val last = storage.lastVersion(view)
          if (last.nonEmpty && written.isEmpty) report.shows(last)
        }
      }
    }
    // A query started by START may have failed.
    RunningViews.end(session, view)
  }

  /** Fails if another writer has changed the view's rows. */
  private def checkWriters(): Unit =
    if (history.lastSuccess.nonEmpty) written.foreach { rows =>
      throw analysis("CHANGELOG_VIEW_WRITTEN_BY_OTHERS", "view" -> view.name, "written" -> rows)
    }

  /** Returns what another writer has written since the last recorded version. */
  private def written: Option[String] =
    new StreamLogs(session, view.definition.checkpoint).queryId
      .flatMap(storage.writtenByOthers(view, _, history.lastShown))

  /** Returns the reason for the kind of refresh if the statement names no kind. */
  private def reason: String = {
    val policy = view.definition.policy
    if (policy != RefreshPolicy.Auto) s"the refresh policy is $policy"
    else if (query.followed.nonEmpty) "the query reads followed tables"
    else if (query.isStreaming) "the query reads a stream"
    else "the query reads neither a stream nor a followed table"
  }

  /** Reads the changes. Recomputes instead if changes are lost or cost more, and the policy allows. */
  private def follow(
      wasRefreshed: Boolean,
      policy: RefreshPolicy,
      report: RefreshReport): Unit = {
    val mayRecompute = policy == RefreshPolicy.Auto
    if (wasRefreshed && hasNoCheckpoint) {
      if (!mayRecompute)
        throw refused(analysis("CHANGELOG_VIEW_NOT_BEGUN", "view" -> view.name), policy)
      report.isFor("full", "the view has no state for an incremental refresh")
      compute(Replacement.AllRows, report)
    } else if (wasRefreshed && ViewRefresh.isWithoutState(session, view)) {
      if (policy == RefreshPolicy.Strict || !replaceChangedPartitions(report))
        followWithoutState(mayRecompute, policy, report)
    } else {
      val estimate = if (wasRefreshed) cheaper.estimate(history) else None
      estimate.foreach(report.isExpectedToCost)
      if (mayRecompute && estimate.exists(cheaper.isFull)) {
        report.isFor("full", "an incremental refresh is expected to cost more")
        compute(Replacement.AllRows, report)
      } else {
        if (wasRefreshed || !fill(report)) followChanges(policy, report)
        if (history.lastSuccess.isEmpty) readAll(view, report)
      }
    }
  }

  private def followWithoutState(
      mayRecompute: Boolean,
      policy: RefreshPolicy,
      report: RefreshReport): Unit = {
    val changed = cheaper.changed
    changed.foreach(report.isExpectedToCost)
    if (mayRecompute && changed.exists(cheaper.changesMost)) {
      report.isFor("full", "most rows have changed, and the view has no state")
      compute(Replacement.AllRows, report)
    } else if (mayRecompute && changed.exists(cheaper.waitsWithState(_, history))) {
      report.isFor("full", RefreshReason.StateWaits)
      compute(Replacement.AllRows, report)
    } else {
      report.isFor("incremental", RefreshReason.StateMissing)
      followChanges(policy, report)
    }
  }

  /** Recomputes the rows of changed partitions, if possible and cheaper than computing state. */
  private def replaceChangedPartitions(report: RefreshReport): Boolean = {
    val partitions = new TouchedPartitions(query, view.definition.checkpoint)
    defersState && partitions.isPossible && inNewGeneration(report) { (staged, replaceRows) =>
      val checkpoint = staged.definition.checkpoint
      var touched = Option.empty[TouchedPartitions.Touched]
      val isDone = new RowsByBatchPlan(query).compute(
        checkpoint,
        rows => {
          touched = partitions.until(checkpoint)
          touched.map(_.restrict(rows))
        }) { (rows, queryId) =>
        report.isFor(TouchedPartitions.Mode, touched.get.describe)
        checkWriters()
        val how = Replacement.RowsWhere(touched.get.ofView, query.key)
        replaceRows(staged, rows, how, Some(queryId))
      }
      if (isDone) readAll(staged, report)
      isDone
    }
  }

  /** Whether a computation from scratch leaves out the state. */
  private lazy val defersState: Boolean =
    query.isStreaming && view.definition.policy == RefreshPolicy.Auto &&
      view.definition.kind == ViewKind.MaterializedView && query.whyNotRecomputable.isEmpty &&
      query.session.sessionState.conf.getConf(ChangelogConf.VIEW_STATE) == "late"

  /**
   * Computes rows without state, and passes the rows to `write` with the query's id. Returns false if nothing was
   * written, for lack of data or because state is wanted at once. Rejects a query whose changes could not be stored
   * later.
   */
  private def computeWithoutState(target: MaterializedView)(
      write: (DataFrame, String) => Unit): Boolean =
    defersState && {
      storage.check(target, query.sinkInput)
      new RowsByBatchPlan(query).compute(target.definition.checkpoint)(write)
    }

  /** Computes the first rows without state, if possible. */
  private def fill(report: RefreshReport): Boolean =
    computeWithoutState(view)(new ReplaceRows(session, storage, report).fill(view, _, _))

  private def followChanges(policy: RefreshPolicy, report: RefreshReport): Unit =
    try catchUp(view, storage.sink(view), report)
    catch {
      case error: Throwable =>
        val failure = RefreshFailure.of(error)
        def mayRecompute = policy == RefreshPolicy.Auto && query.whyNotRecomputable.isEmpty
        // Bad rows may be corrected by now, but the batch that has begun would still read the bad rows.
        if ((failure.requiresRecompute || failure.isOfRows) && mayRecompute) {
          report.isFor("full", RefreshError(session, failure.error))
          SharedVersions.forgetAll(session)
          compute(Replacement.AllRows, report)
        } else
          throw if (failure.requiresRecompute) refused(failure.error, policy) else failure.error
    }

  /** Returns the error if only a recomputation would help, and a recomputation is not allowed. */
  private def refused(cause: Throwable, policy: RefreshPolicy): Throwable = {
    val obstacle =
      if (policy == RefreshPolicy.Strict) Some("INCREMENTAL STRICT forbids a recompute.")
      else if (policy == RefreshPolicy.Auto) query.whyNotRecomputable
      else None
    obstacle.fold(cause) { obstacle =>
      analysis(
        "CHANGELOG_VIEW_NOT_RECOMPUTABLE",
        cause,
        "view" -> view.name,
        "reason" -> RefreshError(session, cause),
        "obstacle" -> obstacle)
    }
  }

  /** Whether the view has no checkpoint, because its rows were computed by a batch query. */
  private def hasNoCheckpoint: Boolean = {
    val checkpoint = view.definition.checkpoint
    !checkpoint.getFileSystem(session.sessionState.newHadoopConf()).exists(checkpoint)
  }

  private def computeState(): Unit =
    try {
      runOnce(view, storage.sink(view), new RefreshReport, OneBatch.Only)
      ()
    } catch { case error: Throwable => throw RefreshFailure.of(error).error }

  /** Keeps the view current until stopped. */
  def start(): StreamingQuery = {
    if (!query.isStreaming) throw query.notIncremental(view.sql)
    checkSchema()
    checkWriters()
    if (history.lastSuccess.nonEmpty && hasNoCheckpoint)
      throw analysis("CHANGELOG_VIEW_NOT_BEGUN", "view" -> view.name)
    RunningViews.active(view).getOrElse {
      beginIfTimePasses(view)
      val started = writer(view, storage.sink(view), view.definition.trigger)
      RunningViews.add(view, started)
      started
    }
  }

  /** Recomputes the view by its query, and replaces the rows of the previous query. */
  def replace(): Unit = history.remember { report =>
    report.isFor("full", RefreshReason.Replaced)
    compute(Replacement.RecreateTable, report)
  }

  /**
   * Replaces the rows of the previous query `before`, and continues with its state. If no state can be kept, recomputes
   * the view, unless rows would be lost.
   */
  def evolve(before: MaterializedView, why: String = RefreshReason.Replaced): Unit = {
    val obstacle = if (history.lastSuccess.isEmpty) None else whyNotRecomputable(before)
    history.remember { report =>
      report.isFor("full", why)
      val isDone =
        try query.isStreaming && continuesFrom(before, obstacle.nonEmpty, report)
        catch {
          // For example, a table may have lost history behind the state.
          case NonFatal(error) =>
            val reason = RefreshError(session, error)
            obstacle.foreach(why =>
              throw analysis(
                "CHANGELOG_VIEW_NOT_ALTERED",
                error,
                "view" -> view.name,
                "reason" -> reason,
                "obstacle" -> why))
            report.isFor("full", reason)
            false
        }
      if (!isDone) compute(replacing(before), report)
    }
  }

  /** Returns why the rows of the previous query may not be recomputed. */
  private def whyNotRecomputable(before: MaterializedView): Option[String] =
    try {
      if (before.definition.policy == RefreshPolicy.Full) None
      else new ViewQuery(session, before.definition).whyNotRecomputable
    } catch {
      // For example, a source table of the previous query may have been dropped.
      case _: AnalysisException => query.whyNotRecomputable
    }

  /** Replaces the rows in place, or recreates the table if columns, layout or properties differ. */
  private def replacing(before: MaterializedView): Replacement = {
    def layoutOf(view: MaterializedView) = view.layout.map(_.describe())
    val was = before.copy(layout = DeltaLayout.of(session, before, before.schema))
    val isSame = view.beginsWithColumnsOf(before) && layoutOf(view) == layoutOf(was) &&
      view.definition.properties == before.definition.properties &&
      view.definition.comment == before.definition.comment
    if (!isSame) Replacement.RecreateTable
    else Replacement.DifferingRows(if (query.isStreaming) query.key else None)
  }

  private def continuesFrom(
      before: MaterializedView,
      mustContinue: Boolean,
      report: RefreshReport): Boolean = {
    val evolution = query.evolutionFrom(before)
    val numKept = evolution.operators.count(_.isKept)
    val isUsed = numKept > 0 || mustContinue
    if (isUsed) {
      val numNow = evolution.operators.count(_.state != "dropped")
      val kept = s"$numKept of $numNow nodes keep their state"
      report.isFor("evolved", s"the query was changed; $kept")
      // The view's definition names the generation of the rows, so no sink needs a note.
      compute(replacing(before), report, evolution.prepare(_, held = None, noted = false))
    }
    isUsed
  }

  /**
   * Computes the view into a new generation beside the visible rows. The rows become visible at once, together with the
   * definition. Later refreshes continue from the new generation.
   *
   * @param prepare
   *   creates a checkpoint to continue from, if any
   */
  private def compute(
      how: Replacement,
      report: RefreshReport,
      prepare: Path => Unit = _ => ()): Unit = {
    inNewGeneration(report) { (staged, replaceRows) =>
      // The commit that recreates a Delta table records no batch, so the batch would be written again.
      val mayDefer = how.replacesAllRows && !(view.isDelta && how == Replacement.RecreateTable)
      def isReplaced = mayDefer && computeWithoutState(staged) { (rows, queryId) =>
        replaceRows(staged, rows, how, Some(queryId))
      }
      if (!query.isStreaming) replaceRows(staged, query.rows, how)
      else {
        if (!isReplaced) {
          prepare(staged.definition.checkpoint)
          catchUp(staged, storage.stagingSink(staged), report)
          replaceRows(staged, storage.staged(staged).getOrElse(none(staged.schema)), how)
        }
        readAll(staged, report)
      }
      true
    }
    ()
  }

  /**
   * Shows the rows of a new generation. If `show` returns false or fails, deletes the generation and leaves the view as
   * is.
   */
  private def inNewGeneration(report: RefreshReport)(
      show: (MaterializedView, ReplaceRows) => Boolean): Boolean = {
    // Fails here for an invalid retention, before any rows become visible.
    val retention = view.definition.retention
    val generation = ViewStorage.newGeneration(view.definition.home)
    val staged = view.copy(definition = view.definition.copy(generation = Some(generation)))
    val isShown =
      try show(staged, new ReplaceRows(session, storage, report))
      catch {
        case error: Throwable =>
          ViewStorage.discard(session, staged)
          throw error
      }
    if (isShown) ViewStorage.retire(session, staged, view, retention)
    else ViewStorage.discard(session, staged)
    isShown
  }

  /** Reports the amount of source data, for the cost estimates of later refreshes. */
  private def readAll(target: MaterializedView, report: RefreshReport): Unit = {
    val offsets = new BatchLogs(session, target.definition.checkpoint).lastOffsets
    report.reads(offsets.flatMap { offset =>
      TableVersion.find(offset).map(version => s"table ${version.table}" -> offset)
    }.toMap)
    new ViewInputs(query, target.definition.checkpoint).size
      .foreach(size => report.readAll(size.inAll))
  }

  /** Reads the source data available at the start. */
  private def catchUp(
      target: MaterializedView,
      sink: (String, Map[String, String]),
      report: RefreshReport): Unit = {
    beginIfTimePasses(target)
    val first = runOnce(target, sink, report)
    // A trigger with a single batch may only have finished an earlier batch.
    val last =
      if (RunningStream.hasReadAll(first) || !RunningStream.runsOneBatch(first)) first
      else runOnce(target, sink, report)
    if (!RunningStream.hasReadAll(last))
      throw analysis("CHANGELOG_VIEW_REFRESH_STOPPED", "view" -> view.name)
  }

  private def runOnce(
      target: MaterializedView,
      sink: (String, Map[String, String]),
      report: RefreshReport,
      trigger: Trigger = Trigger.AvailableNow()): StreamingQuery = {
    // By default, Spark keeps the progress of the last 100 batches only, and loses the row counts of earlier batches.
    query.session.conf.set(SQLConf.STREAMING_PROGRESS_RETENTION.key, 10000)
    val running = writer(target, sink, trigger)
    try running.awaitTermination()
    catch {
      case NonFatal(error) =>
        KafkaBrokers.check(query.analyzed, error)
        throw error
    } finally {
      running.stop()
      report.did(running)
    }
    running
  }

  /** Begins a batch if rows may be due although no data has arrived. */
  private def beginIfTimePasses(target: MaterializedView): Unit = if (query.readsTime) {
    new BatchLogs(query.session, target.definition.checkpoint).begin(System.currentTimeMillis())
  }

  private def writer(
      target: MaterializedView,
      sink: (String, Map[String, String]),
      trigger: Trigger): StreamingQuery = query.start {
    new BatchLogs(query.session, target.definition.checkpoint).uncommitFirstBatch()
    query.changes.writeStream
      .format(sink._1)
      .options(sink._2)
      .option("checkpointLocation", target.definition.checkpoint.toString)
      .queryName(target.queryName)
      .trigger(trigger)
      .start()
  }

  /** Fails if the source tables' columns have changed the columns of the query. */
  private def checkSchema(): Unit =
    if (hasOtherColumns)
      throw analysis(
        "CHANGELOG_VIEW_SCHEMA_CHANGED",
        "view" -> view.name,
        "stored" -> columns(view.schema),
        "found" -> columns(query.schema))

  private def hasOtherColumns: Boolean = columns(view.schema) != columns(query.schema)

  private def columns(schema: StructType): Seq[String] =
    schema.map(field => s"${field.name} ${TableVersion.ofRows(field.dataType).sql}")

  private def none(schema: StructType): DataFrame =
    query.session.createDataFrame(java.util.List.of[Row](), schema)
}

object ViewRefresh {

  /** Returns whether the visible rows of a view were computed without state. */
  def isWithoutState(session: SparkSession, view: MaterializedView): Boolean =
    new BatchLogs(session, view.definition.checkpoint).isWithoutState

  /** Computes the state of rows computed without state. The rows stay unchanged. */
  def computeState(session: SparkSession, view: MaterializedView): Unit =
    if (isWithoutState(session, view)) ViewLeases.of(session, view) {
      if (isWithoutState(session, view)) new ViewRefresh(session, view).computeState()
    }
}
