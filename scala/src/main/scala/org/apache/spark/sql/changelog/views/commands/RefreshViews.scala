// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import scala.util.{Success, Try}

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.SqlCommand
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.views._

/** RefreshViews: the statements that bring views up to date. */
object RefreshViews {

  /**
   * `REFRESH MATERIALIZED VIEW v [FULL | INCREMENTAL [STRICT]]`: catches up with the sources, and ends.
   *
   * @param asked
   *   the policy for this refresh; the view's policy if None
   */
  def one(name: Seq[String], asked: Option[RefreshPolicy]): LogicalPlan =
    SqlCommand.unit("REFRESH", name, asked)(session =>
      ViewLeases(session, name)(new ViewRefresh(session, _).refresh(asked)))

  /** `START MATERIALIZED VIEW v`: keeps the view current in this process until stopped. */
  def start(name: Seq[String]): LogicalPlan = SqlCommand.unit("START", name)(session =>
    ViewLeases(session, name)(new ViewRefresh(session, _).start()))

  /** `STOP MATERIALIZED VIEW v`: stops the query begun by `START`. The view's rows stay unchanged. */
  def stop(name: Seq[String]): LogicalPlan = SqlCommand.unit("STOP", name)(session =>
    RunningViews.end(session, new ViewCatalog(session).get(name)))

  /** `REFRESH MATERIALIZED VIEWS [IN database]`: refreshes each view after its upstream views. */
  def all(database: Seq[String]): LogicalPlan =
    several("REFRESH ALL", database) { (session, _) =>
      val catalog = new ViewCatalog(session)
      // Fails with Spark's error if the database does not exist.
      if (database.isEmpty) catalog.listAllWithErrors() else catalog.listWithErrors(database, "*")
    }

  /** `REFRESH MATERIALIZED VIEW v WITH UPSTREAM`: refreshes all direct and indirect upstream views, then the view. */
  def withUpstream(name: Seq[String]): LogicalPlan =
    several("REFRESH WITH UPSTREAM", name) { (session, dependencies) =>
      val views = dependencies.withUpstream(Seq(new ViewCatalog(session).get(name)))
      views.map(view => view.name -> Success(view))
    }

  /** Refreshes several views. Reports failed and unreadable views after the remaining views are refreshed. */
  private def several(statement: String, arguments: Any*)(
      asked: (SparkSession, ViewDependencies) => Seq[(TableIdentifier, Try[MaterializedView])])
      : LogicalPlan =
    SqlCommand.returning(columns, statement, arguments: _*) { session =>
      val dependencies = new ViewDependencies(session)
      val (unreadable, views) = asked(session, dependencies).partitionMap { case (name, found) =>
        found.toEither.left.map(RefreshedView.failed(name, _))
      }
      val refreshed = new ViewPipeline(session, dependencies).refresh(views) ++ unreadable
      val failed = refreshed.filter(_.error.nonEmpty)
      failed.headOption.flatMap(_.error).foreach { first =>
        val skipped = refreshed.filter(_.state == RefreshedView.Skipped).map(_.name)
        val errors = failed.map { view =>
          val message = String.valueOf(view.error.get.getMessage)
          s"${view.name.quotedString} (${message.linesIterator.nextOption().getOrElse("")})"
        }
        throw analysis(
          "CHANGELOG_VIEWS_NOT_REFRESHED",
          first,
          "failed" -> errors,
          "skipped" -> skipped)
      }
      refreshed.map { refreshed =>
        val record = refreshed.record
        Row(
          refreshed.name.database.orNull,
          refreshed.name.table,
          refreshed.state,
          record.map(_.mode).orNull,
          record.flatMap(_.rowsRead).getOrElse(null),
          record.flatMap(_.rowsWritten).getOrElse(null),
          record.flatMap(_.rowsRetracted).getOrElse(null),
          record.map(_.millis / 1000.0).getOrElse(null))
      }
    }

  private val columns = """
    namespace STRING, name STRING, state STRING, mode STRING, rows_read BIGINT,
    rows_written BIGINT, rows_retracted BIGINT, seconds DOUBLE"""
}
