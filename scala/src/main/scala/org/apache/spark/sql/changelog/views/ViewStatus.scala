// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.time.{Duration, Instant}

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.util.{DateTimeUtils, TimestampFormatter}
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.sources.tables.TableVersion
import org.apache.spark.sql.changelog.views.history.{RefreshError, RefreshHistory, RefreshRecord}
import org.apache.spark.sql.changelog.views.verify.{VerificationRecord, VerifyView, ViewLog}

/** ViewStatus: the facts about a view known without reading the rows. */
class ViewStatus(session: SparkSession, view: MaterializedView) {
  private val definition = view.definition
  private val log = new ViewLog(session, definition.folder)
  private val history = RefreshHistory.ofView(session, view)
  private lazy val last = history.last
  private lazy val lastSuccess = history.lastSuccess
  private lazy val query = new ViewQuery(session, definition)

  /** Returns the last recorded refresh, if any. */
  def lastRefresh: Option[RefreshRecord] = last

  /** Returns the view's state: RUNNING with a query of this process, FAILED after a failure, else IDLE. */
  def state: String = RunningViews.last(view) match {
    case Some(query) if query.isActive => "RUNNING"
    case Some(query) if query.exception.nonEmpty => "FAILED"
    case _ => if (last.forall(_.succeeded) && misread.isEmpty) "IDLE" else "FAILED"
  }

  /** The error in the view's properties or text, if any. Spark's `ALTER` sets both without a check. */
  private lazy val misread: Option[String] = {
    def altered = Try(ViewStorage(session, view).alteredByOthers(view)).toOption.flatten
    Try(definition.check()).failed.toOption.orElse(altered).map(RefreshError(session, _))
  }

  /** Returns the permitted age of the rows in milliseconds, if given and valid. */
  def lag: Option[Long] = Try(definition.lag).toOption.flatten

  /** Returns the last time at which the view contained all delivered source data. */
  def asOf: Option[String] = asOfMillis.map(time)

  /** Returns the age of [[asOf]] in seconds. */
  def behindSeconds: Option[Double] = asOfMillis.map { millis =>
    Duration.between(Instant.ofEpochMilli(millis), Instant.now()).toMillis / 1000.0
  }

  def facts: Seq[(String, String)] = Seq("Kind" -> definition.kind.toString, "Status" -> state) ++
    failure.map("Failure" -> _) ++
    Try(definition.policy).toOption.map("Refresh policy" -> _.toString) ++
    Seq("Plan" -> plan) ++
    lastSuccess.map("Last refresh" -> refresh(_)) ++
    asOf.map("As of" -> _) ++
    asOfMillis.map { millis =>
      "Behind" -> s"at most ${Duration.between(Instant.ofEpochMilli(millis), Instant.now()).toSeconds} s"
    } ++
    versions ++
    Seq("Last verification" -> log.lastVerification.fold("never")(verification))

  def details: Seq[(String, String)] = Seq(
    "Format" -> definition.provider,
    "Version" -> ViewStorage(session, view).version(view).toString,
    "Checkpoint" -> definition.checkpoint.toString,
    "Query" -> definition.query) ++
    definition.comment.map("Comment" -> _) ++
    session.sessionState.conf.redactOptions(definition.properties).toSeq.sorted ++
    Try(query).filter(_.isStreaming).map("Changes" -> _.output.explained.toText).toOption

  /** Returns how the view is refreshed. */
  private def plan: String =
    try describeUpkeep
    catch { case NonFatal(error) => s"unknown: ${error.getMessage.linesIterator.next()}" }

  private def describeUpkeep: String =
    if (!query.isStreaming) {
      val reasons =
        if (query.obstacles.isEmpty) Seq("the query reads no stream") else query.obstacles
      s"recomputed by each refresh: ${reasons.mkString("; ").linesIterator.next()}"
    } else {
      val key =
        query.key.fold("all columns identify a row")(_.mkString("key (", ", ", ")"))
      s"incremental, ${query.output.explained.mode}, $key"
    }

  /** Returns the versions of the followed tables read by the last batch. */
  private def versions: Seq[(String, String)] = {
    val methods =
      Try(query.followed).getOrElse(Nil).map(table => table.name -> table.method).toMap
    new BatchLogs(session, definition.checkpoint).lastOffsets.flatMap(TableVersion.find).map {
      version =>
        val how = methods.get(version.table).fold("")(method => s", followed by $method")
        s"Read of ${version.table}" -> s"version ${version.version}$how"
    }
  }

  /** Returns why the last refresh failed, or why the next refresh will fail. */
  def failure: Option[String] = misread.orElse(RunningViews.last(view) match {
    case Some(query) =>
      query.exception.map(error => RefreshError(session, RefreshFailure.of(error).error))
    case None =>
      last.flatMap(record => record.error.map(error => s"${time(record.finished)}, $error"))
  })

  private def refresh(record: RefreshRecord): String = {
    val counts = Seq(
      "read" -> record.rowsRead,
      "written" -> record.rowsWritten,
      "retracted" -> record.rowsRetracted)
    val rows = counts.collect { case (what, Some(count)) => s"$count rows $what" }
    val what = (record.mode +: rows).mkString(", ")
    s"${time(record.finished)}, $what in ${record.millis} ms"
  }

  private def asOfMillis: Option[Long] = {
    val running = RunningViews.active(view).flatMap(query => Option(query.lastProgress))
    val progressed = running.map(progress => Instant.parse(progress.timestamp).toEpochMilli)
    progressed.orElse(lastSuccess.map(_.asOf))
  }

  private def verification(record: VerificationRecord): String = {
    val outcome = record.differences match {
      case 0 => "equal"
      case found if found > VerifyView.MostRows =>
        s"more than ${VerifyView.MostRows} differing rows"
      case found => s"$found differing rows"
    }
    val part = record.sample.fold("")(percent => s", a sample of $percent percent")
    s"${time(record.at)}: $outcome, ${record.rows} rows compared$part"
  }

  private def time(millis: Long): String = TimestampFormatter
    .getFractionFormatter(DateTimeUtils.getZoneId(session.sessionState.conf.sessionLocalTimeZone))
    .format(DateTimeUtils.millisToMicros(millis))
}
