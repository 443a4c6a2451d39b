// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.views.{RunningViews, ViewCatalog, ViewStorage}

/** `DROP MATERIALIZED VIEW [IF EXISTS] v`: stops it, and deletes its rows and its checkpoint. */
case class DropKeptView(name: Seq[String], ifExists: Boolean) extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    val catalog = new ViewCatalog(session)
    if (!ifExists || catalog.exists(catalog.identify(name))) {
      val view = catalog.get(name)
      RunningViews.stop(view)
      ViewStorage(session, view.definition.provider).drop(view)
    }
    Nil
  }
}
