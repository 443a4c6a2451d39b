// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views._

/**
 * `DROP MATERIALIZED VIEW [IF EXISTS] v [CASCADE]`: stops it, and deletes its rows and its
 * checkpoint.
 *
 * @param cascade
 *   whether the views that read it go as well; else it stays if there are any
 */
case class DropKeptView(name: Seq[String], ifExists: Boolean, cascade: Boolean)
    extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    val catalog = new ViewCatalog(session)
    if (!ifExists || catalog.exists(catalog.identify(name))) {
      val view = catalog.get(name)
      val dependencies = new ViewDependencies(session)
      val readers = dependencies.readersOf(view).filter(_.name != view.name)
      if (readers.isEmpty) drop(session, view)
      else if (!cascade) throw ViewErrors.isRead(view.name, readers.map(_.name))
      else {
        val all = dependencies.withReaders(Seq(view))
        dependencies.ordered(all).reverse.foreach(drop(session, _))
      }
    }
    Nil
  }

  private def drop(session: SparkSession, view: KeptView): Unit =
    ViewLeases(session, view.name.nameParts) { now =>
      RunningViews.stop(now)
      Fence.check("drop")
      ViewLeases.leave(now)
      ViewStorage(session, now.definition.provider).drop(now)
    }
}
