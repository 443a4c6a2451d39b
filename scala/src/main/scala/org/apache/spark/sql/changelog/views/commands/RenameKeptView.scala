// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.{BatchLogs, Fence}
import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views._

/** `ALTER MATERIALIZED VIEW v RENAME TO w`: it goes on under the other name, in the same database. */
case class RenameKeptView(name: Seq[String], to: Seq[String]) extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    ViewLeases(session, name)(rename(session, _))
    Nil
  }

  private def rename(session: SparkSession, view: KeptView): Unit = {
    val catalog = new ViewCatalog(session)
    val target = catalog.identify(to)
    catalog.checkName(target)
    RunningViews.active(view).foreach(_ => throw ViewErrors.isRunning(view.name))
    if (target.database != view.name.database) {
      throw ViewErrors.clauseNotSupported(
        view.sql,
        "A name in another database",
        "Make a view there, and drop this one.")
    }
    if (catalog.exists(target)) throw ViewErrors.exists(target)
    val readers = new ViewDependencies(session).readersOf(view)
    if (readers.nonEmpty) throw ViewErrors.nameIsRead(view.name, readers.map(_.name))
    // a batch is known by the name of the table that it is written to
    val logs = new BatchLogs(session, view.definition.checkpoint)
    if (logs.lastBegun != logs.lastDone) {
      throw ViewErrors.batchUnfinished(view.name, "renamed", logs.lastBegun.getOrElse(0L))
    }
    Fence.check("rename")
    // its folder may move, and what stands there of its turns
    ViewLeases.moving(session, view) {
      ViewStorage(session, view.definition.provider).rename(view, target)
      catalog.get(target.nameParts)
    }
  }
}
