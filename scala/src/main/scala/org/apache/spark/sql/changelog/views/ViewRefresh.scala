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
import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.sources.tables.{SharedMoments, TableVersion}
import org.apache.spark.sql.changelog.views.cost.{CheaperRefresh, ViewInputs}
import org.apache.spark.sql.changelog.views.history.{
  RefreshError,
  RefreshHistory,
  RefreshReason,
  RefreshReport
}

/** Brings a view up to date: by what has changed, from scratch, or for as long as it runs. */
class ViewRefresh(session: SparkSession, view: KeptView) {
  private val query = new ViewQuery(session, view.definition)
  // what is stored must be done in the session of the query, as its sink does
  private val storage = ViewStorage(query.session, view.definition.provider)
  private val history = RefreshHistory.ofView(session, view)
  private val cheaper = new CheaperRefresh(session, view, query)

  /** As the policy says, or in the way that was `asked` for. */
  def refresh(asked: Option[RefreshPolicy]): Unit = {
    RunningViews.checkNone(view)
    val wasRefreshed = history.lastSuccess.nonEmpty
    history.remember { report =>
      SharedMoments.began(session).foreach(report.isAsOf)
      val policy = asked.getOrElse(view.definition.policy)
      val isFull =
        policy == RefreshPolicy.Full || !query.isStreaming && !policy.isIncremental
      val why =
        if (history.last.isEmpty) RefreshReason.New
        else if (asked.isDefined) "asked for"
        else reason
      val isFirst = history.lastSuccess.isEmpty
      report.isFor(if (isFull || isFirst && computesLate) "full" else "incremental", why)
      if (!isFull && !query.isStreaming) throw query.notIncremental(view.sql)
      checkSchema()
      if (isFull) compute(Replacement.OfAll, report)
      else {
        checkWriters()
        follow(wasRefreshed, policy, report)
      }
      report.shows(storage.lastVersion(view))
    }
    // one that START began, and that has failed
    RunningViews.end(session, view)
  }

  /** Refuses to go on from rows that somebody else has written. */
  private def checkWriters(): Unit = for {
    last <- history.lastSuccess
    queryId <- new StreamLogs(session, view.definition.checkpoint).queryId
    version <- storage.versionOfOthers(view, queryId, last.shown)
  } throw ViewErrors.writtenByOthers(view.name, version)

  /** Why it is done as it is if nobody asks for another way. */
  private def reason: String = {
    val policy = view.definition.policy
    if (policy != RefreshPolicy.Auto) s"the refresh policy is $policy"
    else if (query.followed.nonEmpty) "the query reads tables that are followed"
    else if (query.isStreaming) "the query reads a stream"
    else "the query reads no stream, and no table that is followed"
  }

  /** Reads what has changed, or all where that can't be told, or costs less, and is allowed. */
  private def follow(
      wasRefreshed: Boolean,
      policy: RefreshPolicy,
      report: RefreshReport): Unit = {
    val mayCompute = policy == RefreshPolicy.Auto
    if (wasRefreshed && hasNoCheckpoint) {
      if (!mayCompute) throw refused(ViewErrors.notBegun(view.name), policy)
      report.isFor("full", "nothing was kept from which changes could go on")
      compute(Replacement.OfAll, report)
    } else if (wasRefreshed && ViewRefresh.isWithoutState(session, view)) {
      if (policy == RefreshPolicy.Strict || !replaceTouched(report))
        followWithoutState(mayCompute, policy, report)
    } else {
      val estimate = if (wasRefreshed) cheaper.estimate(history) else None
      estimate.foreach(report.isExpectedToCost)
      if (mayCompute && estimate.exists(cheaper.isFull)) {
        report.isFor("full", "to go through what has changed is expected to cost more")
        compute(Replacement.OfAll, report)
      } else {
        if (wasRefreshed || !fill(report)) followChanges(policy, report)
        if (!wasRefreshed) readAll(view, report)
      }
    }
  }

  private def followWithoutState(
      mayCompute: Boolean,
      policy: RefreshPolicy,
      report: RefreshReport): Unit = {
    val changed = cheaper.changed
    changed.foreach(report.isExpectedToCost)
    if (mayCompute && changed.exists(cheaper.isMost)) {
      report.isFor("full", "most has changed, and there is no state to go on from")
      compute(Replacement.OfAll, report)
    } else {
      report.isFor("incremental", RefreshReason.StateMissing)
      followChanges(policy, report)
    }
  }

  /** Recomputes the rows of changed partitions, if that is possible and cheaper than computing state. */
  private def replaceTouched(report: RefreshReport): Boolean = {
    val partitions = new TouchedPartitions(query, view.definition.checkpoint)
    computesLate && partitions.isPossible && inNewGeneration(report) { (staged, replaceRows) =>
      val checkpoint = staged.definition.checkpoint
      var touched = Option.empty[TouchedPartitions.Touched]
      val isDone = new RowsAtOnce(query).compute(
        checkpoint,
        rows => {
          touched = partitions.until(checkpoint)
          touched.map(_.restrict(rows))
        }) { (rows, queryId) =>
        report.isFor(TouchedPartitions.Mode, touched.get.describe)
        val how = Replacement.Within(touched.get.ofView, query.key)
        replaceRows(staged, rows, how, Some(queryId))
      }
      if (isDone) readAll(staged, report)
      isDone
    }
  }

  /** Whether rows that are computed from nothing are computed without state. */
  private lazy val computesLate: Boolean =
    query.isStreaming && view.definition.policy == RefreshPolicy.Auto &&
      view.definition.kind == ViewKind.MaterializedView && query.whyNotRecomputable.isEmpty &&
      query.session.sessionState.conf.getConf(ChangelogConf.VIEW_STATE) == "late"

  /**
   * Computes rows without state, and hands them to `write` with the id of the query. Returns false if there is nothing
   * to read, or state is wanted at once. Refuses a query whose changes could not be kept later.
   */
  private def computeLate(target: KeptView)(write: (DataFrame, String) => Unit): Boolean =
    computesLate && {
      storage.check(target, query.sinkInput)
      new RowsAtOnce(query).compute(target.definition.checkpoint)(write)
    }

  /** Computes the first rows without state, if that is possible. */
  private def fill(report: RefreshReport): Boolean =
    computeLate(view)(new ReplaceRows(session, storage, report).fill(view, _, _))

  private def followChanges(policy: RefreshPolicy, report: RefreshReport): Unit =
    try catchUp(view, storage.sink(view), report)
    catch {
      case error: Throwable =>
        val failure = RefreshFailure.of(error)
        def mayCompute = policy == RefreshPolicy.Auto && query.whyNotRecomputable.isEmpty
        // bad rows may be mended by now, and the batch that was begun would go on to meet them
        if ((failure.asksForAll || failure.isOfRows) && mayCompute) {
          report.isFor("full", RefreshError(session, failure.error))
          SharedMoments.forgetAll(session)
          compute(Replacement.OfAll, report)
        } else throw if (failure.asksForAll) refused(failure.error, policy) else failure.error
    }

  /** What is said where all would have to be computed anew, and may not be. */
  private def refused(cause: Throwable, policy: RefreshPolicy): Throwable = {
    val obstacle =
      if (policy == RefreshPolicy.Strict) Some("INCREMENTAL STRICT forbids it")
      else if (policy == RefreshPolicy.Auto) query.whyNotRecomputable
      else None
    obstacle.fold(cause) { obstacle =>
      ViewErrors.notRecomputable(view.name, RefreshError(session, cause), obstacle, cause)
    }
  }

  /** Whether its rows were computed at once, so that changes have nothing to go on from. */
  private def hasNoCheckpoint: Boolean = {
    val checkpoint = view.definition.checkpoint
    !checkpoint.getFileSystem(session.sessionState.newHadoopConf()).exists(checkpoint)
  }

  private def computeState(): Unit = {
    runOnce(view, storage.sink(view), new RefreshReport, OneBatch.Only)
    ()
  }

  /** Keeps the view up to date until it is stopped. */
  def start(): StreamingQuery = {
    if (!query.isStreaming) throw query.notIncremental(view.sql)
    checkSchema()
    if (history.lastSuccess.nonEmpty && hasNoCheckpoint) throw ViewErrors.notBegun(view.name)
    RunningViews.active(view).getOrElse {
      beginIfTimePasses(view)
      val started = writer(view, storage.sink(view), view.definition.trigger)
      RunningViews.add(view, started)
      started
    }
  }

  /** Shows the rows of this view's query, in place of those of another, computed from scratch. */
  def replace(): Unit = history.remember { report =>
    report.isFor("full", RefreshReason.Replaced)
    compute(Replacement.Anew, report)
  }

  /**
   * Shows the rows of this view's query, which goes on with the state of another that kept it `before`. Where
   * that can't be, or keeps nothing, all is computed anew, unless rows would be gone then.
   */
  def evolve(before: KeptView): Unit = {
    val obstacle = if (history.lastSuccess.isEmpty) None else whyNotRecomputable(before)
    history.remember { report =>
      report.isFor("full", RefreshReason.Replaced)
      val isDone =
        try query.isStreaming && goesOn(before, obstacle.nonEmpty, report)
        catch {
          // as a table may no longer have what the state was made of
          case NonFatal(error) =>
            val reason = RefreshError(session, error)
            obstacle.foreach(why => throw ViewErrors.notAltered(view.name, reason, why, error))
            report.isFor("full", reason)
            false
        }
      if (!isDone) compute(replacing(before), report)
    }
  }

  /** Why rows may not be computed anew that were those of another query. */
  private def whyNotRecomputable(before: KeptView): Option[String] =
    try {
      if (before.definition.policy == RefreshPolicy.Full) None
      else new ViewQuery(session, before.definition).whyNotRecomputable
    } catch {
      // as a table that it read may be gone
      case _: AnalysisException => query.whyNotRecomputable
    }

  /** Its table holds other rows, or is made anew where it is to be another one. */
  private def replacing(before: KeptView): Replacement = {
    def layoutOf(view: KeptView) = view.layout.map(_.describe())
    val was = before.copy(layout = DeltaLayout.of(session, before, before.schema))
    val isSame = view.beginsWithColumnsOf(before) && layoutOf(view) == layoutOf(was) &&
      view.definition.properties == before.definition.properties &&
      view.definition.comment == before.definition.comment
    if (!isSame) Replacement.Anew
    else Replacement.OfDifference(if (query.isStreaming) query.key else None)
  }

  private def goesOn(before: KeptView, mustGoOn: Boolean, report: RefreshReport): Boolean = {
    val evolution = query.evolutionFrom(before)
    val numKept = evolution.operators.count(_.isKept)
    val isUsed = numKept > 0 || mustGoOn
    if (isUsed) {
      val numNow = evolution.operators.count(_.state != "dropped")
      val kept = s"$numKept of $numNow nodes have kept their state"
      report.isFor("evolved", s"the query was changed; $kept")
      // the view itself knows whose rows it shows
      compute(replacing(before), report, evolution.prepare(_, held = None, noted = false))
    }
    isUsed
  }

  /**
   * Computes all rows anew, next to those that are shown, and shows them at once, with what the
   * view says. What has been computed goes on from there.
   *
   * @param prepare
   *   makes the checkpoint from which the query goes on, if it does
   */
  private def compute(
      how: Replacement,
      report: RefreshReport,
      prepare: Path => Unit = _ => ()): Unit = {
    inNewGeneration(report) { (staged, replaceRows) =>
      def isReplaced = how.isOfAll && computeLate(staged) { (rows, queryId) =>
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

  /** Shows the rows of a new generation. If `show` returns false or fails, it is deleted, and the view stays as it is. */
  private def inNewGeneration(report: RefreshReport)(
      show: (KeptView, ReplaceRows) => Boolean): Boolean = {
    // refused before any rows are shown, if nobody has checked it
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

  /** So that later refreshes can be compared with what this one cost. */
  private def readAll(target: KeptView, report: RefreshReport): Unit = {
    val offsets = new BatchLogs(session, target.definition.checkpoint).lastOffsets
    report.reads(offsets.flatMap { offset =>
      TableVersion.find(offset).map(version => s"table ${version.table}" -> offset)
    }.toMap)
    new ViewInputs(query, target.definition.checkpoint).size
      .foreach(size => report.readAll(size.inAll))
  }

  /** Reads all that the sources have when it begins. */
  private def catchUp(
      target: KeptView,
      sink: (String, Map[String, String]),
      report: RefreshReport): Unit = {
    beginIfTimePasses(target)
    val first = runOnce(target, sink, report)
    // where Spark runs a single batch, it may have been one that was begun before
    val last =
      if (RunningStream.hasReadAll(first) || !RunningStream.runsOneBatch(first)) first
      else runOnce(target, sink, report)
    if (!RunningStream.hasReadAll(last)) throw ViewErrors.refreshStopped(view.name)
  }

  private def runOnce(
      target: KeptView,
      sink: (String, Map[String, String]),
      report: RefreshReport,
      trigger: Trigger = Trigger.AvailableNow()): StreamingQuery = {
    // Spark forgets the progress of all but the last 100 batches, and with it how many rows they read
    query.session.conf.set(SQLConf.STREAMING_PROGRESS_RETENTION.key, ViewRefresh.MostBatches)
    val running = writer(target, sink, trigger)
    try running.awaitTermination()
    finally {
      running.stop()
      report.did(running)
    }
    running
  }

  /** Begins a batch if rows may be due although nothing has arrived. */
  private def beginIfTimePasses(target: KeptView): Unit = if (query.readsTime) {
    new BatchLogs(query.session, target.definition.checkpoint).begin(System.currentTimeMillis())
  }

  private def writer(
      target: KeptView,
      sink: (String, Map[String, String]),
      trigger: Trigger): StreamingQuery = query.start {
    new BatchLogs(query.session, target.definition.checkpoint).leaveOutState()
    query.changes.writeStream
      .format(sink._1)
      .options(sink._2)
      .option("checkpointLocation", target.definition.checkpoint.toString)
      .queryName(target.queryName)
      .trigger(trigger)
      .start()
  }

  /** The sources of a query may have other columns than when the view was made. */
  private def checkSchema(): Unit = {
    def columns(schema: StructType) =
      schema.map(field => s"${field.name} ${TableVersion.ofRows(field.dataType).sql}")
    val stored = columns(view.schema)
    val found = columns(query.schema)
    if (stored != found) throw ViewErrors.schemaChanged(view.name, stored, found)
  }

  private def none(schema: StructType): DataFrame =
    query.session.createDataFrame(java.util.List.of[Row](), schema)
}

object ViewRefresh {

  /** Whether the rows that a view shows were computed without state. */
  def isWithoutState(session: SparkSession, view: KeptView): Boolean =
    new BatchLogs(session, view.definition.checkpoint).isWithoutState

  /** Computes the state of rows that were computed without it; the rows stay as they are. */
  def computeState(session: SparkSession, view: KeptView): Unit =
    if (isWithoutState(session, view)) ViewLeases.of(session, view) {
      if (isWithoutState(session, view)) new ViewRefresh(session, view).computeState()
    }

  /** How many batches of a refresh are counted. */
  private val MostBatches = 10000
}
