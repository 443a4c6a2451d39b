// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier
import org.apache.spark.sql.catalyst.plans.logical.{DropTable, DropView, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.connector.catalog.CatalogManager.SESSION_CATALOG_NAME
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier}
import org.apache.spark.sql.execution.command.DropTableCommand

import org.apache.spark.sql.changelog.views.commands.DropKeptView

/**
 * Lets `DROP TABLE v` and `DROP VIEW v` do what `DROP MATERIALIZED VIEW v` does if `v` is one: what
 * Spark drops is the table, or the view on the newest rows, and neither rows nor checkpoint that lie
 * elsewhere.
 */
class DropViewsWhole(creator: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case DropTableCommand(name, ifExists, _, _) =>
      dropped(name.nameParts, ifExists).getOrElse(plan)
    case DropTable(ResolvedIdentifier(catalog, name), ifExists, _) =>
      dropped(catalog, name, ifExists).getOrElse(plan)
    case DropView(ResolvedIdentifier(catalog, name), ifExists) =>
      dropped(catalog, name, ifExists).getOrElse(plan)
    case _ => plan
  }

  private def dropped(
      catalog: CatalogPlugin,
      name: Identifier,
      ifExists: Boolean): Option[LogicalPlan] =
    if (catalog.name() != SESSION_CATALOG_NAME) None
    else dropped(catalog.name() +: name.asMultipartIdentifier, ifExists)

  private def dropped(parts: Seq[String], ifExists: Boolean): Option[LogicalPlan] =
    new ViewCatalog(castToImpl(creator))
      .findIfReadable(parts)
      .map(_ => DropKeptView(parts, ifExists, cascade = false))
}
