// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.views.RunningViews
import org.apache.spark.sql.changelog.views.history.{RefreshError, RefreshHistory}

/** `STOP MATERIALIZED VIEW v`: ends what `START` began; the view stays as it is. */
case class StopKeptView(name: Seq[String]) extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    val view = find(session, name)
    val failure = RunningViews.last(view).flatMap(_.exception)
    RunningViews.stop(view).foreach { report =>
      val error = failure.map(RefreshError(session, _))
      RefreshHistory.ofView(session, view).add(report.finished(error))
    }
    Nil
  }
}
