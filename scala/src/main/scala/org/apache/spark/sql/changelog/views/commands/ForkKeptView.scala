// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import scala.util.control.NonFatal

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.savepoints.Moment
import org.apache.spark.sql.changelog.views._

/**
 * `CREATE MATERIALIZED VIEW w FROM v [AT BATCH n | AT SAVEPOINT s]`: makes another view of the same query,
 * which goes on beside the first from the rows and the state that it had then.
 */
case class ForkKeptView(name: Seq[String], from: Seq[String], at: Moment, ifNotExists: Boolean)
    extends ViewCommand {
  override protected def runIn(session: SparkSession): Seq[Row] = {
    val catalog = new ViewCatalog(session)
    val full = catalog.identify(name)
    catalog.checkName(full)
    if (catalog.exists(full)) {
      if (!ifNotExists) throw ViewErrors.exists(full)
    } else {
      ViewLeases(session, from) { view =>
        val image = ViewImage(session, view, at)
        val definition =
          view.definition.withQueryOf(image.view.definition).copy(generation = None)
        val layout = DeltaLayout.of(session, view, image.view.schema)
        val made = KeptView(full, image.view.schema, definition, layout)
        create(session, made, image, s"it was made from ${view.sql}")
      }
    }
    Nil
  }

  /** Creates it with its first rows, or not at all. */
  private def create(
      session: SparkSession,
      made: KeptView,
      image: ViewImage,
      reason: String): Unit = {
    val storage = ViewStorage(session, made.definition.provider)
    val view = storage.create(made)
    try
      ViewLeases.of(session, view) {
        new ViewRestore(session, image)(view, "forked", s"$reason after batch ${image.batch}")
      }
    catch {
      case error: Throwable =>
        try storage.drop(view)
        catch { case NonFatal(other) => error.addSuppressed(other) }
        throw error
    }
  }
}
