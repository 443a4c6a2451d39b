// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.views.{ViewRefresh, ViewLeases}

/** `START MATERIALIZED VIEW v`: keeps it up to date in this process until it is stopped. */
case class StartKeptView(name: Seq[String]) extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    ViewLeases(session, name)(new ViewRefresh(session, _).start())
    Nil
  }
}
