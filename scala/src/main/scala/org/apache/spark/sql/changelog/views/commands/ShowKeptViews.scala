// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.views.{ViewCatalog, ViewDependencies, ViewStatus}

/** `SHOW MATERIALIZED VIEWS [IN database] [LIKE pattern]`: what there is, and how it does. */
case class ShowKeptViews(database: Option[String], pattern: Option[String]) extends ViewCommand {

  override val output: Seq[Attribute] = toAttributes(ShowKeptViews.columns)

  override protected def runIn(session: SparkSession): Seq[Row] = {
    val catalog = session.sessionState.catalog
    val dependencies = new ViewDependencies(session)
    val views = new ViewCatalog(session)
      .list(database.getOrElse(catalog.getCurrentDatabase), pattern.getOrElse("*"))
    views.sortBy(_.name.table).map { view =>
      val status = new ViewStatus(session, view)
      Row(
        view.name.database.orNull,
        view.name.table,
        view.definition.kind.toString,
        status.state,
        status.asOf.orNull,
        status.behindSeconds.getOrElse(null),
        status.lag.map(_ / 1000.0).getOrElse(null),
        dependencies.readBy(view).map(_.name.nameParts.tail.mkString(".")).sorted,
        status.failure.orNull)
    }
  }
}

object ShowKeptViews {
  private val columns = StructType.fromDDL("""
    namespace STRING, name STRING, kind STRING, status STRING, as_of STRING,
    behind_seconds DOUBLE, lag_seconds DOUBLE, reads ARRAY<STRING>, failure STRING""")
}
