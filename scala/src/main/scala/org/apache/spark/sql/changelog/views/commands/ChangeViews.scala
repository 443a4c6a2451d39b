// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.SqlCommand
import org.apache.spark.sql.changelog.checkpoint.{BatchLogs, Fence}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.evolution.{OperatorSpread, Rescaling, StatePlan}
import org.apache.spark.sql.changelog.savepoints.RestorePoint
import org.apache.spark.sql.changelog.views._

/** ChangeViews: the statements that change or remove a view. */
object ChangeViews {

  /** Changes a view, unless a query of this process keeps the view current. */
  private def changing[T](session: SparkSession, name: Seq[String])(
      change: MaterializedView => T): T =
    ViewLeases(session, name) { view =>
      RunningViews.checkNone(view)
      change(view)
    }

  /**
   * `ALTER MATERIALIZED VIEW v SET TBLPROPERTIES (…)` and `UNSET TBLPROPERTIES [IF EXISTS] (…)`. A running query
   * continues unchanged. For a view of files, the statement fails if the query runs in another process.
   */
  def properties(
      name: Seq[String],
      set: Map[String, String],
      unset: Seq[String],
      ifExists: Boolean): LogicalPlan =
    SqlCommand.unit("ALTER PROPERTIES", name, set, unset, ifExists) { session =>
      def alter(view: MaterializedView): Unit = {
        val old = view.definition.properties
        def is(name: String)(other: String) = name.equalsIgnoreCase(other)
        if (!ifExists) unset.find(name => !old.keys.exists(is(name))).foreach { name =>
          throw analysis(
            "CHANGELOG_VIEW_PROPERTY_UNKNOWN",
            "property" -> name,
            "known" -> old.keys.toSeq.sorted)
        }
        val replaced = unset ++ set.keys
        replaced.find(ViewDefinition.changesRows).foreach { property =>
          throw analysis(
            "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
            "view" -> view.sql,
            "clause" -> s"ALTER of $property",
            "advice" -> "The property changes the rows of the view; use CREATE OR REPLACE.")
        }
        val kept = old.filterNot { case (name, _) => replaced.exists(is(name)) }
        val altered = view.definition.copy(properties = kept ++ set).check()
        if (altered.listsColumns != view.definition.listsColumns) {
          throw analysis(
            "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
            "view" -> view.sql,
            "clause" -> s"ALTER of ${ViewDefinition.SchemaChange} from or to 'ignore'",
            "advice" -> "The property is part of the stored query; use CREATE OR REPLACE.")
        }
        if (altered.emission != view.definition.emission) {
          throw analysis(
            "CHANGELOG_VIEW_PROPERTY_INVALID",
            "property" -> ViewDefinition.Emit,
            "value" -> altered.properties.getOrElse(ViewDefinition.Emit, "changes"),
            "expected" -> "the value of the view's state, or CREATE OR REPLACE with another value,")
        }
        val definition =
          if (replaced.exists(is(ViewDefinition.Follow))) altered.following else altered
        ViewStorage(session, view).alter(view, definition)
      }
      // A batch of a view of files rewrites the catalog entry as a whole, as this statement does.
      if (new ViewCatalog(session).get(name).isDelta) {
        ViewLeases.evenIfQueryRuns(session, name)(alter)
      } else ViewLeases(session, name)(alter)
    }

  /**
   * `ALTER MATERIALIZED VIEW v AS query`: gives the view another query. Operators with unchanged meaning keep their
   * state. Readers see the old rows until the new rows are complete.
   */
  def query(name: Seq[String], query: String): LogicalPlan =
    SqlCommand.unit("ALTER AS", name, query) { session =>
      changing(session, name) { view =>
        val altered = withQuery(session, view, query)
        new ViewDependencies(session).checkNoCycle(view.name, altered.definition)
        new ViewRefresh(session, altered).evolve(view)
      }
    }

  /**
   * `EXPLAIN ALTER MATERIALIZED VIEW v AS query`: returns the effect on each operator's state. Returns no rows for a
   * view without state, which would be recomputed.
   */
  def explainQuery(name: Seq[String], query: String): LogicalPlan =
    SqlCommand("EXPLAIN ALTER AS", name, query)(
      _ => StatePlan.columns,
      session => {
        val view = new ViewCatalog(session).get(name)
        val altered = withQuery(session, view, query)
        if (ViewRefresh.isWithoutState(session, view)) Nil
        else new ViewQuery(session, altered.definition).evolutionFrom(view).operators.map(_.toRow)
      })

  private def withQuery(
      session: SparkSession,
      view: MaterializedView,
      query: String): MaterializedView = {
    val definition = view.definition.copy(query = query, temporaryViews = None)
    val changed = new ViewQuery(session, definition).check()
    if (changed.reads(view.name)) throw analysis("CHANGELOG_VIEW_RECURSIVE", "view" -> view.name)
    val (named, schema) = new ViewColumns(view.name, Nil)(changed, session)
    val known = named.definition.copy(temporaryViews = Some(changed.temporaryViews))
    MaterializedView(view.name, schema, known, DeltaLayout.of(session, view, schema))
  }

  /**
   * `ALTER MATERIALIZED VIEW v SET PARTITIONS n`: distributes the state of the view's query over `n` partitions. The
   * visible rows stay unchanged.
   *
   * The new checkpoint is created beside the current checkpoint. The view's definition then switches to the new
   * checkpoint in one step.
   */
  def partitions(name: Seq[String], numPartitions: Int): LogicalPlan =
    SqlCommand("ALTER PARTITIONS", name, numPartitions)(
      _ => OperatorSpread.columns,
      session =>
        changing(session, name) { view =>
          ViewRefresh.computeState(session, view)
          val checkpoint = view.definition.checkpoint
          Rescaling.check(checkpoint, numPartitions)
          val files = checkpoint.getFileSystem(session.sessionState.newHadoopConf())
          val rescaled = view.definition.inPartitions(numPartitions)
          val batches = new BatchLogs(session, checkpoint)
          val spread =
            if (!files.exists(checkpoint)) Nil
            else if (batches.lastBegun.orElse(batches.lastDone).nonEmpty)
              new Rescaling(session, checkpoint, numPartitions).write(rescaled.checkpoint)
            else {
              // Without data so far, the first batch will use the new number.
              files.mkdirs(rescaled.checkpoint)
              Nil
            }
          ViewStorage(session, view).alter(view, rescaled)
          files.delete(checkpoint, true)
          spread.map(_.toRow)
        })

  /** `ALTER MATERIALIZED VIEW v RENAME TO w`: renames the view within its database. */
  def rename(name: Seq[String], to: Seq[String]): LogicalPlan =
    SqlCommand.unit("ALTER RENAME", name, to) { session =>
      ViewLeases(session, name) { view =>
        val catalog = new ViewCatalog(session)
        val target = catalog.identify(to)
        catalog.checkName(target)
        RunningViews.checkNone(view)
        if (target.copy(table = view.name.table) != view.name) {
          throw analysis(
            "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
            "view" -> view.sql,
            "clause" -> "A name in another database",
            "advice" -> "Make a view there, and drop this one.")
        }
        if (catalog.exists(target)) throw analysis("CHANGELOG_VIEW_EXISTS", "view" -> target)
        val readers = new ViewDependencies(session).readersOf(view)
        if (readers.nonEmpty)
          throw analysis(
            "CHANGELOG_VIEW_NAME_IS_READ",
            "view" -> view.name,
            "readers" -> readers.map(_.name))
        // The table's name identifies the batches written to the table.
        val logs = new BatchLogs(session, view.definition.checkpoint)
        if (logs.lastBegun != logs.lastDone) {
          throw analysis(
            "CHANGELOG_VIEW_BATCH_UNFINISHED",
            "view" -> view.name,
            "what" -> "renamed",
            "batch" -> logs.lastBegun.getOrElse(0L))
        }
        Fence.check("rename")
        // The folder may move, together with the lease.
        ViewLeases.moving(session, view) {
          ViewStorage(session, view).rename(view, target)
          catalog.get(target.nameParts)
        }
      }
    }

  /** `ALTER MATERIALIZED VIEW v SWAP WITH w`: exchanges two views. */
  def swap(name: Seq[String], other: Seq[String]): LogicalPlan =
    SqlCommand.unit("ALTER SWAP", name, other) { session =>
      ViewLeases.both(session, name, other) { (v, w) =>
        Seq(v, w).foreach(RunningViews.checkNone)
        Seq(v, w).find(!_.isInSessionCatalog).foreach { view =>
          throw analysis(
            "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
            "view" -> view.sql,
            "clause" -> "SWAP outside the session catalog",
            "advice" -> "Give each view the other's query by ALTER … AS.")
        }
        if (v.definition.provider != w.definition.provider) {
          throw analysis(
            "CHANGELOG_VIEW_CLAUSE_NOT_SUPPORTED",
            "view" -> v.sql,
            "clause" -> s"SWAP with ${w.sql}, which is stored USING ${w.definition.provider}",
            "advice" -> s"Make that one USING ${v.definition.provider}.")
        }
        val dependencies = new ViewDependencies(session)
        dependencies.checkNoCycle(v.name, w.definition)
        dependencies.checkNoCycle(w.name, v.definition)
        if (v.name != w.name) ViewSwap(session, v, w)
      }
    }

  /**
   * `RESTORE MATERIALIZED VIEW v TO BATCH n | TO SAVEPOINT s`: restores the view's rows, state and query at the restore
   * point. Later refreshes continue from there.
   */
  def restore(name: Seq[String], to: RestorePoint): LogicalPlan =
    SqlCommand.unit("RESTORE", name, to) { session =>
      changing(session, name) { view =>
        val image = ViewImage(session, view, to)
        new ViewDependencies(session).checkNoCycle(view.name, image.view.definition)
        val from = to.savepoint.fold("")(name => s"the savepoint $name, ")
        val reason = s"it was put back to ${from}batch ${image.batch}"
        image.restore(session, view, "restored", reason)
      }
    }

  /**
   * `DROP MATERIALIZED VIEW [IF EXISTS] v [CASCADE]`: stops the view's query, and deletes the view's rows and
   * checkpoint.
   *
   * @param cascade
   *   whether downstream views are dropped, too. Otherwise the statement fails if downstream views exist.
   */
  def drop(name: Seq[String], ifExists: Boolean, cascade: Boolean): LogicalPlan =
    SqlCommand.unit("DROP", name, ifExists, cascade) { session =>
      def drop(view: MaterializedView): Unit = ViewLeases(session, view.name.nameParts) { now =>
        RunningViews.stop(now)
        Fence.check("drop")
        ViewLeases.endForRemoval(now)
        ViewStorage(session, now).drop(now)
      }
      val catalog = new ViewCatalog(session)
      if (!ifExists || catalog.exists(catalog.identify(name))) {
        val view = catalog.get(name)
        val dependencies = new ViewDependencies(session)
        val readers = dependencies.readersOf(view).filter(_.name != view.name)
        if (readers.isEmpty) drop(view)
        else if (!cascade)
          throw analysis(
            "CHANGELOG_VIEW_IS_READ",
            "view" -> view.name,
            "readers" -> readers.map(_.name))
        else {
          val all = dependencies.withReaders(Seq(view))
          dependencies.ordered(all).reverse.foreach(drop)
        }
      }
    }
}
