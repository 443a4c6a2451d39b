// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.views.RunningViews

/** `STOP MATERIALIZED VIEW v`: ends what `START` began; the view stays as it is. */
case class StopKeptView(name: Seq[String]) extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    RunningViews.end(session, find(session, name))
    Nil
  }
}
