// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.util.control.NonFatal

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.sources.tables.SharedVersions
import org.apache.spark.sql.changelog.views.history.RefreshHistory
import org.apache.spark.sql.changelog.views.history.RefreshRecord

/**
 * ViewPipeline: refreshes views in the order of their dependencies. If a view fails, the downstream views stay
 * unchanged, and the remaining views are refreshed. The views read a common source table at the same version.
 */
class ViewPipeline(session: SparkSession, dependencies: ViewDependencies) {
  def refresh(views: Seq[KeptView]): Seq[RefreshedView] = SharedVersions.within(session) {
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
        // The definition may have changed during the refresh of earlier views.
        ViewLeases(session, view.name.nameParts) { now =>
          new ViewRefresh(session, now).refresh(asked = None)
          val record = RefreshHistory.ofView(session, now).last
          RefreshedView(view, RefreshedView.Refreshed, record)
        }
      } catch {
        case error: SparkThrowable if error.getCondition == ViewLease.RunningElsewhere =>
          RefreshedView(view, RefreshedView.Running)
        case NonFatal(error) =>
          RefreshedView(view, RefreshedView.Failed, error = Some(error))
      }

  private def isBehind(refreshed: RefreshedView): Boolean =
    Seq(RefreshedView.Failed, RefreshedView.Skipped).contains(refreshed.state)
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
    view: KeptView,
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
}
