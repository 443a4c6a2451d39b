// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.views.{
  KeptView,
  RefreshedView,
  ViewDependencies,
  ViewPipeline
}

/**
 * `REFRESH MATERIALIZED VIEWS [IN database]` and `REFRESH MATERIALIZED VIEW v WITH UPSTREAM`: each
 * view after those that it reads. One that fails is told when all others have been refreshed.
 */
case class RefreshKeptViews(which: RefreshKeptViews.Which) extends ViewCommand {
  import RefreshKeptViews._

  override val output: Seq[Attribute] = toAttributes(columns)

  override protected def runIn(session: SparkSession): Seq[Row] = {
    val dependencies = new ViewDependencies(session)
    val refreshed = new ViewPipeline(session, dependencies).refresh(asked(session, dependencies))
    val failed = refreshed.filter(_.error.nonEmpty)
    failed.headOption.flatMap(_.error).foreach { first =>
      val skipped = refreshed.filter(_.state == RefreshedView.Skipped).map(_.view.name)
      val errors = failed.map(view => view.view.name -> view.error.get)
      throw ViewErrors.notRefreshed(errors, skipped, first)
    }
    refreshed.map(row)
  }

  private def asked(session: SparkSession, dependencies: ViewDependencies): Seq[KeptView] =
    which match {
      case All => dependencies.views
      case OfDatabase(database) =>
        session.sessionState.catalog.getDatabaseMetadata(database) // or an error of Spark's
        dependencies.views.filter(_.name.database.exists(_.equalsIgnoreCase(database)))
      case Upstream(name) => dependencies.withUpstream(Seq(find(session, name)))
    }

  private def row(refreshed: RefreshedView): Row = {
    val record = refreshed.record
    Row(
      refreshed.view.name.database.orNull,
      refreshed.view.name.table,
      refreshed.state,
      record.map(_.mode).orNull,
      record.flatMap(_.rowsRead).getOrElse(null),
      record.flatMap(_.rowsWritten).getOrElse(null),
      record.flatMap(_.rowsTakenBack).getOrElse(null),
      record.map(_.millis / 1000.0).getOrElse(null))
  }
}

object RefreshKeptViews {
  sealed trait Which
  case object All extends Which
  case class OfDatabase(database: String) extends Which

  /** A view and all that its query reads, or that what it reads reads. */
  case class Upstream(name: Seq[String]) extends Which

  private val columns = StructType.fromDDL("""
    namespace STRING, name STRING, state STRING, mode STRING, rows_read BIGINT,
    rows_written BIGINT, rows_taken_back BIGINT, seconds DOUBLE""")
}
