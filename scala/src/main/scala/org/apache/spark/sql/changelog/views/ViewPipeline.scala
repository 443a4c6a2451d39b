// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.util.control.NonFatal

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.sources.tables.SharedMoments
import org.apache.spark.sql.changelog.views.history.RefreshHistory
import org.apache.spark.sql.changelog.views.history.RefreshRecord

/**
 * Refreshes views in the order in which they read each other. One that fails leaves the others
 * right: those that read it stay as they are, all others are refreshed. A table that several of them read is
 * seen by all at one moment.
 */
class ViewPipeline(session: SparkSession, dependencies: ViewDependencies) {
  def refresh(views: Seq[KeptView]): Seq[RefreshedView] = SharedMoments.within(session) {
    dependencies.ordered(views).foldLeft(Seq.empty[RefreshedView]) { (before, view) =>
      val behind = before.filter(isBehind).map(_.view.name).toSet
      val isBlocked = dependencies.readBy(view).exists(read => behind.contains(read.name))
      before :+ (if (isBlocked) RefreshedView(view, RefreshedView.Skipped) else refresh(view))
    }
  }

  private def refresh(view: KeptView): RefreshedView =
    if (RunningViews.active(view).nonEmpty) RefreshedView(view, RefreshedView.Running)
    else
      try {
        // what it says may have changed while others were refreshed
        ViewLeases(session, view.name.nameParts) { now =>
          new ViewRefresh(session, now).refresh(asked = None)
          val record = RefreshHistory.ofView(session, now).last
          RefreshedView(view, RefreshedView.Refreshed, record)
        }
      } catch {
        case error: SparkThrowable if ViewErrors.saysIsRunning(error.getCondition) =>
          RefreshedView(view, RefreshedView.Running)
        case NonFatal(error) =>
          RefreshedView(view, RefreshedView.Failed, error = Some(error))
      }

  private def isBehind(refreshed: RefreshedView): Boolean =
    Seq(RefreshedView.Failed, RefreshedView.Skipped).contains(refreshed.state)
}

/**
 * What came of a view when several were to be refreshed.
 *
 * @param record
 *   its refresh, if there was one that succeeded
 * @param error
 *   why it failed
 */
case class RefreshedView(
    view: KeptView,
    state: String,
    record: Option[RefreshRecord] = None,
    error: Option[Throwable] = None)

object RefreshedView {
  val Refreshed = "REFRESHED"
  val Failed = "FAILED"

  /** Not refreshed, since a view that it reads was not. */
  val Skipped = "SKIPPED"

  /** A query of this process keeps it up to date. */
  val Running = "RUNNING"
}
