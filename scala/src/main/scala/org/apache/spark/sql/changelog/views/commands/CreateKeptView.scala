// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import scala.util.control.NonFatal

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views._

/**
 * `CREATE [OR REPLACE] MATERIALIZED VIEW` and `CREATE [OR REPLACE] STREAMING TABLE`: makes the table
 * and fills it with what its sources have delivered so far.
 *
 * @param provider
 *   the format the rows are stored in, Spark's default if none
 */
case class CreateKeptView(
    kind: ViewKind,
    name: Seq[String],
    query: String,
    provider: Option[String],
    comment: Option[String],
    properties: Map[String, String],
    ifNotExists: Boolean,
    replace: Boolean)
    extends ViewCommand {

  override protected def runIn(session: SparkSession): Seq[Row] = {
    val catalog = new ViewCatalog(session)
    val full = catalog.identify(name)
    val old = catalog.find(full)
    if (catalog.exists(full) && (old.isEmpty || !replace)) {
      if (!ifNotExists) throw ViewErrors.exists(full)
    } else {
      val definition = define(session)
      val checked = new ViewQuery(session, definition).check()
      old match {
        case Some(view) => replaceView(session, view, definition, checked)
        case None => create(session, full, definition, checked)
      }
    }
    Nil
  }

  private def define(session: SparkSession): ViewDefinition = {
    val manager = session.sessionState.catalogManager
    val conf = session.sessionState.conf
    ViewDefinition(
      kind,
      query,
      manager.currentCatalog.name() +: manager.currentNamespace.toSeq,
      ViewDefinition.settingsOf(conf),
      provider.getOrElse(conf.defaultDataSourceName).toLowerCase,
      comment,
      properties).check()
  }

  /** It is there with its first rows, or not at all. */
  private def create(
      session: SparkSession,
      full: TableIdentifier,
      definition: ViewDefinition,
      checked: ViewQuery): Unit = {
    val storage = ViewStorage(session, definition.provider)
    val view = storage.create(full, checked.schema, definition)
    try new ViewRefresh(session, view).refresh(full = None)
    catch {
      case error: Throwable =>
        try storage.drop(view)
        catch { case NonFatal(other) => error.addSuppressed(other) }
        throw error
    }
  }

  /** Readers see the old rows until the new ones are there, unless the format changes. */
  private def replaceView(
      session: SparkSession,
      view: KeptView,
      definition: ViewDefinition,
      checked: ViewQuery): Unit = {
    RunningViews.active(view).foreach(_ => throw ViewErrors.isRunning(view.name))
    if (checked.reads(view.name)) throw ViewErrors.recursive(view.name)
    new ViewDependencies(session).checkNoCycle(view.name, definition)
    if (definition.provider == view.definition.provider) {
      val generation = view.definition.generation
      val after = KeptView(view.name, checked.schema, definition.copy(generation = generation))
      new ViewRefresh(session, after).recompute(anew = true)
    } else {
      ViewStorage(session, view.definition.provider).drop(view)
      create(session, view.name, definition, checked)
    }
  }
}
