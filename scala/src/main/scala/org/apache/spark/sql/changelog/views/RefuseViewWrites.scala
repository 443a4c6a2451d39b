// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{ResolvedTable, UnresolvedRelation, UnresolvedTable}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import org.apache.spark.sql.changelog.errors.ViewErrors

/**
 * Refuses statements that write the table of a view, whose rows are those of its query. Queries of views write in
 * sessions of their own.
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
      .foreach(view => throw ViewErrors.readOnly(view.name, statement))

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
