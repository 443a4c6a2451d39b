// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.concurrent.{ExecutorService, LinkedBlockingQueue, TimeUnit}

import scala.annotation.tailrec
import scala.util.control.NonFatal

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.sources.tables.SharedVersions
import org.apache.spark.sql.changelog.views.history.RefreshHistory
import org.apache.spark.sql.changelog.views.history.RefreshRecord

/**
 * ViewPipeline: refreshes views, each after its upstream views. Views that do not read each other are refreshed side by
 * side. If a view fails, the downstream views stay unchanged, and the remaining views are refreshed. Views that read each
 * other in a cycle fail. The views read a common source table at the same version.
 */
class ViewPipeline(session: SparkSession, dependencies: ViewDependencies) {
  import ViewPipeline._

  /** Refreshes the views, and returns the outcomes in the order of the dependencies. */
  def refresh(views: Seq[MaterializedView]): Seq[RefreshedView] = SharedVersions.within(session) {
    val ordered = dependencies.ordered(views)
    val cyclic = dependencies.cycles(views)
    val (failed, acyclic) = ordered.partitionMap { view =>
      cyclic.get(view.name).map(RefreshedView.failed(view.name, _)).toLeft(view)
    }
    val numThreads = session.sessionState.conf.getConf(ChangelogConf.VIEW_REFRESH_THREADS)
    val threads = ThreadUtils.newDaemonFixedThreadPool(numThreads, "refresh-views")
    val outcomes =
      try sideBySide(acyclic, failed.map(view => view.name -> view).toMap, threads)
      finally {
        // If the statement is canceled, the running refreshes stop their queries before the statement ends.
        threads.shutdownNow()
        threads.awaitTermination(LongestStop, TimeUnit.SECONDS)
      }
    ordered.map(view => outcomes(view.name))
  }

  /** Refreshes the views, and adds the outcomes to the outcomes of other views. */
  private def sideBySide(
      views: Seq[MaterializedView],
      others: Outcomes,
      threads: ExecutorService): Outcomes = {
    val upstream = views.map(view => view.name -> dependencies.readBy(view).map(_.name)).toMap
    val ended = new LinkedBlockingQueue[Either[Throwable, RefreshedView]]

    def start(view: MaterializedView, before: Outcomes): Unit = {
      val isBlocked = upstream(view.name).flatMap(before.get).exists(isBehind)
      SQLExecution
        .withThreadLocalCaptured(session, threads) {
          if (isBlocked) RefreshedView(view.name, RefreshedView.Skipped) else refresh(view)
        }
        .whenComplete((outcome, error) => ended.put(Option(error).toLeft(outcome)))
      ()
    }

    @tailrec
    def continue(waiting: Seq[MaterializedView], outcomes: Outcomes): Outcomes = {
      val unfinished = views.map(_.name).toSet -- outcomes.keySet
      val (blocked, ready) = waiting.partition(view => upstream(view.name).exists(unfinished))
      ready.foreach(start(_, outcomes))
      if (unfinished.isEmpty) outcomes
      else {
        val outcome = ended.take().fold(error => throw error.getCause, identity)
        continue(blocked, outcomes + (outcome.name -> outcome))
      }
    }
    continue(views, others)
  }

  private def refresh(view: MaterializedView): RefreshedView =
    if (RunningViews.active(view).nonEmpty) RefreshedView(view.name, RefreshedView.Running)
    else
      try {
        // The definition may have changed during the refresh of earlier views.
        ViewLeases(session, view.name.nameParts) { now =>
          new ViewRefresh(session, now).refresh(asked = None)
          val record = RefreshHistory.ofView(session, now).last
          RefreshedView(view.name, RefreshedView.Refreshed, record)
        }
      } catch {
        case error: SparkThrowable if error.getCondition == ViewLease.RunningElsewhere =>
          RefreshedView(view.name, RefreshedView.Running)
        case NonFatal(error) => RefreshedView.failed(view.name, error)
      }

  private def isBehind(refreshed: RefreshedView): Boolean =
    Seq(RefreshedView.Failed, RefreshedView.Skipped).contains(refreshed.state)
}

private object ViewPipeline {
  type Outcomes = Map[TableIdentifier, RefreshedView]

  /** Seconds to wait for canceled refreshes. */
  val LongestStop = 60L
}

/**
 * RefreshedView: the outcome for one view in a refresh of several views.
 *
 * @param record
 *   the refresh, if successful
 * @param error
 *   the cause of a failure
 */
case class RefreshedView(
    name: TableIdentifier,
    state: String,
    record: Option[RefreshRecord] = None,
    error: Option[Throwable] = None)

object RefreshedView {
  val Refreshed = "REFRESHED"
  val Failed = "FAILED"

  /** Not refreshed, because an upstream view was not refreshed. */
  val Skipped = "SKIPPED"

  /** Kept current by a running query. */
  val Running = "RUNNING"

  def failed(name: TableIdentifier, error: Throwable): RefreshedView =
    RefreshedView(name, Failed, error = Some(error))
}
