// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import scala.util.control.NonFatal

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.StructField

import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views._

/**
 * `CREATE [OR REPLACE] MATERIALIZED VIEW` and `CREATE [OR REPLACE] STREAMING TABLE`: makes the table
 * and fills it with what its sources have delivered so far.
 *
 * @param provider
 *   the format the rows are stored in, Spark's default if none
 * @param columns
 *   what the columns are called, those of the query if none
 * @param layout
 *   how the table is partitioned
 */
case class CreateKeptView(
    kind: ViewKind,
    name: Seq[String],
    query: String,
    provider: Option[String],
    comment: Option[String],
    properties: Map[String, String],
    columns: Seq[StructField],
    layout: Seq[Transform],
    ifNotExists: Boolean,
    replace: Boolean)
    extends ViewCommand {

  override protected def runIn(session: SparkSession): Seq[Row] = {
    val catalog = new ViewCatalog(session)
    val full = catalog.identify(name)
    val old = catalog.find(full)
    catalog.checkName(full)
    if (catalog.exists(full) && (old.isEmpty || !replace)) {
      if (!ifNotExists) throw ViewErrors.exists(full)
    } else {
      val definition = define(session)
      val (checked, schema) =
        new ViewColumns(full, columns)(new ViewQuery(session, definition).check(), session)
      val known = checked.definition.copy(temporaryViews = Some(checked.temporaryViews))
      val made = KeptView(full, schema, known, layout)
      old match {
        case Some(view) =>
          ViewLeases(session, view.name.nameParts)(replaceView(session, _, made, checked))
        case None => create(session, made)
      }
    }
    Nil
  }

  /** What the view would be. */
  def define(session: SparkSession): ViewDefinition = {
    val manager = session.sessionState.catalogManager
    val conf = session.sessionState.conf
    val definition = ViewDefinition(
      kind,
      query,
      manager.currentCatalog.name() +: manager.currentNamespace.toSeq,
      ViewDefinition.settingsOf(conf),
      provider.getOrElse(conf.defaultDataSourceName).toLowerCase,
      comment,
      properties).check()
    definition.following
  }

  /** Creates a view with its first rows, or not at all. */
  private def create(session: SparkSession, made: KeptView): Unit = {
    val storage = ViewStorage(session, made.definition.provider)
    val view = storage.create(made)
    try ViewLeases.of(session, view)(new ViewRefresh(session, view).refresh(asked = None))
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
      made: KeptView,
      checked: ViewQuery): Unit = {
    val definition = made.definition
    RunningViews.active(view).foreach(_ => throw ViewErrors.isRunning(view.name))
    if (checked.reads(view.name)) throw ViewErrors.recursive(view.name)
    new ViewDependencies(session).checkNoCycle(view.name, definition)
    if (definition.provider == view.definition.provider) {
      val goesOn = definition.goingOn(view.definition)
      val refresh = new ViewRefresh(session, made.copy(definition = goesOn))
      // other settings may give the same words another meaning
      val meansTheSame = goesOn.settings == view.definition.settings
      if (kind == ViewKind.MaterializedView && meansTheSame) refresh.evolve(view)
      else refresh.replace()
    } else {
      Fence.check("drop")
      ViewLeases.leave(view)
      ViewStorage(session, view.definition.provider).drop(view)
      create(session, made)
    }
  }
}
