// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{
  ResolvedIdentifier, ResolvedPersistentView, ResolvedTable, UnresolvedIdentifier,
  UnresolvedRelation, UnresolvedTable, UnresolvedView
}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.connector.catalog.{CatalogPlugin, Identifier, V2TableWithV1Fallback}
import org.apache.spark.sql.execution.command.DropTableCommand
import org.apache.spark.sql.execution.datasources.LogicalRelation
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
      case replace: ReplaceTable => refuse("CREATE OR REPLACE TABLE", replace.name)
      case replace: ReplaceTableAsSelect => refuse("CREATE OR REPLACE TABLE", replace.name)
      case view: CreateView if view.replace => refuse("CREATE OR REPLACE VIEW", view.child)
      case view: AlterViewAs => refuse("ALTER VIEW", view.child)
      case stream: WriteToStreamStatement =>
        refuse(
          "a streaming query",
          stream.catalogTable
            .map(_.identifier.nameParts)
            .orElse(stream.catalogAndIdent.map { case (catalog, name) =>
              catalog.name +: name.asMultipartIdentifier
            }))
      case other =>
        DeltaStatements.get(other.getClass.getSimpleName).foreach(refuse(_, targetOf(other)))
    }
    plan
  }

  private def refuse(statement: String, target: LogicalPlan): Unit =
    refuse(statement, nameOf(target))

  private def refuse(statement: String, target: Option[Seq[String]]): Unit =
    target
      .flatMap(new ViewCatalog(castToImpl(creator)).findIfReadable)
      .foreach(view =>
        throw analysis("CHANGELOG_VIEW_READ_ONLY", "view" -> view.name, "statement" -> statement))

  private def nameOf(target: LogicalPlan): Option[Seq[String]] = target match {
    case alias: SubqueryAlias => nameOf(alias.child)
    case named: UnresolvedRelation => Some(named.multipartIdentifier)
    case named: UnresolvedTable => Some(named.multipartIdentifier)
    case named: UnresolvedIdentifier => Some(named.nameParts)
    case named: UnresolvedView => Some(named.multipartIdentifier)
    case view: ResolvedPersistentView =>
      Some(view.catalog.name +: view.identifier.asMultipartIdentifier)
    case ResolvedIdentifier(catalog, name) => Some(catalog.name +: name.asMultipartIdentifier)
    case relation: LogicalRelation => relation.catalogTable.map(_.identifier.nameParts)
    case relation: DataSourceV2Relation =>
      relation.identifier.map(name =>
        relation.catalog.map(_.name).toSeq ++ name.asMultipartIdentifier)
    case table: ResolvedTable =>
      Some(table.catalog.name +: table.identifier.asMultipartIdentifier)
    case _ => None
  }

  /** Returns the table that a statement or a command of Delta writes, unless named by a path. */
  private def targetOf(plan: LogicalPlan): Option[Seq[String]] = plan match {
    case statement: UnaryNode =>
      statement.child.productIterator
        .collectFirst { case table: LogicalPlan => table }
        .flatMap(nameOf)
    case command =>
      command.productIterator
        .collectFirst {
          case Some(table: CatalogTable) => Some(table)
          case table: V2TableWithV1Fallback => Try(table.v1Table).toOption
        }
        .flatten
        .map(_.identifier.nameParts)
  }
}

object RefuseViewWrites {

  /** The statements of Delta's parser and API, by the class of their plan. Spark 4.3 has no Delta. */
  private val DeltaStatements =
    Map("RestoreTableStatement" -> "RESTORE", "RestoreTableCommand" -> "RESTORE")

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
