// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StringType

import org.apache.spark.sql.changelog.views.{ViewCatalog, ViewStatus}

/** `SHOW MATERIALIZED VIEWS [IN database] [LIKE pattern]`: what there is, and how it does. */
case class ShowKeptViews(database: Option[String], pattern: Option[String]) extends ViewCommand {

  override val output: Seq[Attribute] = Seq("namespace", "name", "kind", "status", "as_of")
    .map(AttributeReference(_, StringType)())

  override protected def runIn(session: SparkSession): Seq[Row] = {
    val catalog = session.sessionState.catalog
    val views = new ViewCatalog(session)
      .list(database.getOrElse(catalog.getCurrentDatabase), pattern.getOrElse("*"))
    views.sortBy(_.name.table).map { view =>
      val status = new ViewStatus(session, view)
      Row(
        view.name.database.orNull,
        view.name.table,
        view.definition.kind.toString,
        status.state,
        status.asOf.orNull)
    }
  }
}
