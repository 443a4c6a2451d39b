// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import java.time.Instant

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.views.{RefreshRecord, RunningViews, ViewLog}

/** `STOP MATERIALIZED VIEW v`: ends what `START` began; the view stays as it is. */
case class StopKeptView(name: Seq[String]) extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    val view = find(session, name)
    val progress = RunningViews.active(view).flatMap(query => Option(query.lastProgress))
    RunningViews.stop(view)
    progress.foreach { last =>
      val asOf = Instant.parse(last.timestamp).toEpochMilli
      new ViewLog(session, view.definition.folder)
        .refreshed(RefreshRecord(asOf, System.currentTimeMillis(), "started", last.numInputRows))
    }
    Nil
  }
}
