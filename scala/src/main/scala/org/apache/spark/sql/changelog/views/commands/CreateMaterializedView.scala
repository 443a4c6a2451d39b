// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import scala.util.control.NonFatal

import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.StructField
import org.apache.spark.sql.{Row, SparkSession => AnySession}

import org.apache.spark.sql.changelog.SqlCommand
import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.explain.{ExplainChangelogCommand, ExplainFormat}
import org.apache.spark.sql.changelog.savepoints.RestorePoint
import org.apache.spark.sql.changelog.sources.tables.SharedVersions
import org.apache.spark.sql.changelog.views._

/**
 * `CREATE [OR REPLACE] MATERIALIZED VIEW` and `CREATE [OR REPLACE] STREAMING TABLE`: creates the table, and fills the
 * table from the data delivered so far.
 *
 * @param provider
 *   the format of the stored rows; Spark's default if None
 * @param columns
 *   the columns' names and comments; the query's columns if empty
 * @param layout
 *   the partitioning of the table
 */
case class CreateMaterializedView(
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
    extends LeafRunnableCommand {

  override def run(anySession: AnySession): Seq[Row] = {
    val session = castToImpl(anySession)
    SharedVersions.within(session)(createOrReplace(session))
    Nil
  }

  private def createOrReplace(session: SparkSession): Unit = {
    val catalog = new ViewCatalog(session)
    val full = catalog.identify(name)
    val old = catalog.find(full)
    catalog.checkName(full)
    if (catalog.exists(full) && (old.isEmpty || !replace)) {
      if (!ifNotExists) throw analysis("CHANGELOG_VIEW_EXISTS", "view" -> full)
    } else {
      val definition = define(session)
      val (checked, schema) =
        new ViewColumns(full, columns)(new ViewQuery(session, definition).check(), session)
      val known = checked.definition.copy(temporaryViews = Some(checked.temporaryViews))
      val made = MaterializedView(full, schema, known, layout)
      old match {
        case Some(view) =>
          ViewLeases(session, view.name.nameParts)(replaceView(session, _, made, checked))
        case None => create(session, made, checked)
      }
    }
  }

  /** Returns the definition of the new view. */
  def define(session: SparkSession): ViewDefinition = {
    val manager = session.sessionState.catalogManager
    val conf = session.sessionState.conf
    val definition = ViewDefinition(
      kind,
      query,
      manager.currentCatalog.name() +: manager.currentNamespace.toSeq,
      ViewDefinition.settingsOf(conf),
      provider.getOrElse(formatByDefault(session)).toLowerCase,
      comment,
      properties).check()
    definition.following
  }

  private def formatByDefault(session: SparkSession): String =
    if (MaterializedView.isInSessionCatalog(new ViewCatalog(session).identify(name)))
      session.sessionState.conf.defaultDataSourceName
    else CatalogStorage.FormatOfCatalog

  private def create(session: SparkSession, made: MaterializedView, checked: ViewQuery): Unit =
    CreateMaterializedView.filled(session, made)(
      new ViewRefresh(session, _, checked).refresh(asked = None))

  /** Replaces an existing view. Readers see the old rows until the new rows are complete, unless the format changes. */
  private def replaceView(
      session: SparkSession,
      view: MaterializedView,
      made: MaterializedView,
      checked: ViewQuery): Unit = {
    val format = made.definition.provider
    val definition =
      if (format != CatalogStorage.FormatOfCatalog) made.definition
      else made.definition.copy(provider = view.definition.provider)
    RunningViews.checkNone(view)
    if (checked.reads(view.name)) throw analysis("CHANGELOG_VIEW_RECURSIVE", "view" -> view.name)
    new ViewDependencies(session).checkNoCycle(view.name, definition)
    if (definition.provider == view.definition.provider) {
      val continued = definition.continuing(view.definition)
      val refresh = new ViewRefresh(session, made.copy(definition = continued))
      // Other settings may change the meaning of the same query text.
      val meansTheSame = continued.settings == view.definition.settings
      if (kind == ViewKind.MaterializedView && meansTheSame) refresh.evolve(view)
      else refresh.replace()
    } else {
      Fence.check("drop")
      ViewLeases.endForRemoval(view)
      ViewStorage(session, view).drop(view)
      create(session, made, checked)
    }
  }
}

object CreateMaterializedView {

  /** Creates a view with its first rows, or nothing. Leaves a view whose lease another process has taken. */
  private def filled(session: SparkSession, made: MaterializedView)(
      fill: MaterializedView => Unit): Unit = {
    val storage = ViewStorage(session, made)
    val view = storage.create(made)
    ViewLeases.of(session, view) {
      try fill(view)
      catch {
        case error: Throwable =>
          try {
            Fence.check("drop")
            ViewLeases.endForRemoval(view)
            storage.drop(view)
          } catch { case NonFatal(other) => error.addSuppressed(other) }
          throw error
      }
    }
  }

  /**
   * `CREATE MATERIALIZED VIEW w FROM v [AT BATCH n | AT SAVEPOINT s]`: creates a second view with the rows, state and
   * query of the first view at that point. Both views then continue independently.
   */
  def fork(
      name: Seq[String],
      from: Seq[String],
      at: RestorePoint,
      ifNotExists: Boolean): SqlCommand =
    SqlCommand.unit("CREATE FROM", name, from, at, ifNotExists) { session =>
      val catalog = new ViewCatalog(session)
      val full = catalog.identify(name)
      catalog.checkName(full)
      if (catalog.exists(full)) {
        if (!ifNotExists) throw analysis("CHANGELOG_VIEW_EXISTS", "view" -> full)
      } else {
        ViewLeases(session, from) { view =>
          val image = ViewImage(session, view, at)
          val definition =
            view.definition.withQueryOf(image.view.definition).copy(generation = None)
          val layout = DeltaLayout.of(session, view, image.view.schema)
          val made = MaterializedView(full, image.view.schema, definition, layout)
          val reason = s"it was made from ${view.sql} after batch ${image.batch}"
          filled(session, made)(image.restore(session, _, "forked", reason))
        }
      }
    }

  /**
   * `EXPLAIN CREATE MATERIALIZED VIEW`: returns how each source would be followed, and the plan of the view. Formats
   * other than text return the plan only.
   *
   * @param otherwise
   *   explains a query without a source of changes
   */
  def explain(create: CreateMaterializedView, otherwise: ExplainChangelogCommand): SqlCommand = {
    def beside(lines: Seq[String], plan: String): Row = otherwise.format match {
      case _: ExplainFormat.Text => Row((lines :+ plan).mkString("\n"))
      case _ => Row(plan)
    }
    SqlCommand("EXPLAIN CREATE", create, otherwise)(
      _ => otherwise.output,
      session => {
        val query = new ViewQuery(session, create.define(session))
        val followed = query.followed.flatMap(_.explained)
        val others = query.unfollowed.map { case (table, reason) =>
          s"$table is not followed: $reason"
        }
        val views =
          query.views.toSeq
            .map(view => s"${view.quotedString} is followed by its changes")
            .sorted
        val streams =
          query.streams.map(stream =>
            s"$stream is a stream. A refresh reads the rows since the last refresh.")
        val partitions = TouchedPartitions.columnsOf(query).map { case (table, columns) =>
          val together = columns.mkString(" or ")
          s"If few partitions of $table have changed, a refresh recomputes the rows with the " +
            s"changed values of $together, and computes no state."
        }
        val changes = followed ++ views ++ streams
        if (changes.isEmpty) {
          val recomputed =
            query.obstacles.map(reason => s"Each refresh recomputes all rows: $reason")
          otherwise.run(session).map(row => beside(recomputed, row.getString(0)))
        } else {
          val tree = otherwise.withPartitions(session, query.output.explained)
          otherwise.format(Seq(tree)).map(beside(changes ++ partitions ++ others, _))
        }
      })
  }
}
