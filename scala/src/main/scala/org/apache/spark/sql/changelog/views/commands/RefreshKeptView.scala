// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.views.{RefreshPolicy, ViewRefresh, ViewLeases}

/**
 * `REFRESH MATERIALIZED VIEW v [FULL | INCREMENTAL [STRICT]]`: catches up with the sources, and ends.
 *
 * @param asked
 *   in which way; as the view's policy says, if none
 */
case class RefreshKeptView(name: Seq[String], asked: Option[RefreshPolicy]) extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    ViewLeases(session, name)(new ViewRefresh(session, _).refresh(asked))
    Nil
  }
}
