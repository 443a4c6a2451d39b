// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{
  ResolvedIdentifier, ResolvedTable, UnresolvedRelation, UnresolvedTable
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier}
import org.apache.spark.sql.execution.command.DropTableCommand
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.views.commands.ChangeViews

/**
 * RefuseViewWrites: rejects statements that write a view's table. The rows must come from the view's query. The queries
 * of views write in separate sessions.
 */
class RefuseViewWrites(creator: SparkSession) extends Rule[LogicalPlan] {
  import RefuseViewWrites._

  override def apply(plan: LogicalPlan): LogicalPlan = {
    if (!conf.getConfString(Allowed, "false").toBoolean) plan.foreach {
      case insert: InsertIntoStatement => refuse("INSERT", insert.table)
      case write: V2WriteCommand => refuse("INSERT", write.table)
      case delete: DeleteFromTable => refuse("DELETE", delete.table)
      case update: UpdateTable => refuse("UPDATE", update.table)
      case merge: MergeIntoTable => refuse("MERGE", merge.targetTable)
      case truncate: TruncateTable => refuse("TRUNCATE", truncate.table)
      case truncate: TruncatePartition => refuse("TRUNCATE", truncate.table)
      case _ =>
    }
    plan
  }

  private def refuse(statement: String, target: LogicalPlan): Unit =
    nameOf(target)
      .flatMap(new ViewCatalog(castToImpl(creator)).findIfReadable)
      .foreach(view =>
        throw analysis("CHANGELOG_VIEW_READ_ONLY", "view" -> view.name, "statement" -> statement))

  private def nameOf(target: LogicalPlan): Option[Seq[String]] = target match {
    case alias: SubqueryAlias => nameOf(alias.child)
    case named: UnresolvedRelation => Some(named.multipartIdentifier)
    case named: UnresolvedTable => Some(named.multipartIdentifier)
    case relation: DataSourceV2Relation =>
      relation.identifier.map(name =>
        relation.catalog.map(_.name).toSeq ++ name.asMultipartIdentifier)
    case table: ResolvedTable =>
      Some(table.catalog.name +: table.identifier.asMultipartIdentifier)
    case _ => None
  }
}

object RefuseViewWrites {

  /** The setting of sessions that write views. */
  val Allowed = "spark.sql.changelog.views.writes"

  /** Lets a session write views while `body` runs. */
  def allow(session: SparkSession)(body: => Unit): Unit = {
    val before = session.conf.getOption(Allowed)
    session.conf.set(Allowed, value = true)
    try body
    finally before.fold(session.conf.unset(Allowed))(session.conf.set(Allowed, _))
  }
}

/**
 * DropViewsWhole: turns `DROP TABLE v` and `DROP VIEW v` into `DROP MATERIALIZED VIEW v` if `v` is a materialized view.
 * Spark's statements drop only the table or the catalog's view, and leave rows and checkpoint behind.
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
    dropped(catalog.name() +: name.asMultipartIdentifier, ifExists)

  private def dropped(parts: Seq[String], ifExists: Boolean): Option[LogicalPlan] =
    new ViewCatalog(castToImpl(creator))
      .findIfReadable(parts)
      .map(_ => ChangeViews.drop(parts, ifExists, cascade = false))
}
