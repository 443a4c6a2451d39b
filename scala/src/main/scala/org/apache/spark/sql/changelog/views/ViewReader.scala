// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.expressions.{
  Alias, FunctionTableSubqueryArgumentExpression, NamedArgumentExpression, PlanExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{
  LogicalPlan, Project, SubqueryAlias, UnresolvedWith, View
}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.NamedStream
import org.apache.spark.sql.changelog.functions.FunctionArguments
import org.apache.spark.sql.changelog.plans.FromChangelog

/**
 * ViewReader: reads the views named in a query as changing tables, with or without `STREAM`.
 *
 * {{{
 *   SELECT … FROM v    =>    SELECT … FROM from_changelog(TABLE(changes of v), '_change_type') AS v
 * }}}
 *
 * A Delta view has a change data feed. An Iceberg view is followed as a table. For other views, the reader compares
 * snapshots. In `snapshot => TABLE(v)`,
 * the rows of `v` are read as plain rows.
 */
class ViewReader(session: SparkSession) {
  private val catalog = new ViewCatalog(session)
  private val found = mutable.Set.empty[TableIdentifier]
  private val named = mutable.Set.empty[String]

  /** Returns the views replaced so far. */
  def views: Set[TableIdentifier] = found.toSet

  /** Returns whether a node of the analyzed query holds the changes of a view. */
  def isOfView(plan: LogicalPlan): Boolean = plan match {
    case view: View => named.contains(view.desc.identifier.table)
    case _ => false
  }

  /**
   * Returns the changes of a materialized view that Spark has resolved, in the columns of `view`, or None for other
   * views.
   */
  def changesOf(view: View): Option[LogicalPlan] =
    if (!view.desc.properties.contains(ViewDefinition.Kind)) None
    else
      catalog.find(view.desc.identifier).filter(_.schema.size == view.output.size).map { kept =>
        val changes = changesOf(kept)
        val columns = changes.output.zip(view.output).map { case (read, column) =>
          Alias(read, column.name)(column.exprId, column.qualifier)
        }
        Project(columns, changes)
      }

  /** Returns the parsed query with each view replaced by a read of the view's changes. */
  def replaceViews(plan: LogicalPlan): LogicalPlan = replace(plan, Set.empty)

  /**
   * Replaces the views below a node.
   *
   * @param hidden
   *   the names of common table expressions, which hide views of the same name
   */
  private def replace(plan: LogicalPlan, hidden: Set[String]): LogicalPlan = plan match {
    case tables: UnresolvedWith =>
      val (ofTables, inside) = NamesRead.hiddenBy(tables, hidden)
      tables.copy(
        child = replace(tables.child, inside),
        cteRelations =
          tables.cteRelations.zip(ofTables).map { case ((name, table, depth), hidden) =>
            (name, table.copy(child = replace(table.child, hidden)), depth)
          })
    case named @ NamedStream(relation: UnresolvedRelation) =>
      read(relation, hidden)(changesOf).getOrElse(named)
    case relation: UnresolvedRelation => read(relation, hidden)(changesOf).getOrElse(relation)
    case other =>
      other.mapChildren(replace(_, hidden)).transformExpressions {
        case named @ NamedArgumentExpression(name, table: FunctionTableSubqueryArgumentExpression)
            if name.equalsIgnoreCase(FunctionArguments.Snapshot) =>
          named.copy(value = table.withNewPlan(withRows(table.plan, hidden)))
        case subquery: PlanExpression[_] =>
          val query = subquery.asInstanceOf[PlanExpression[LogicalPlan]]
          query.withNewPlan(replace(query.plan, hidden))
      }
  }

  /** Returns a snapshot's query with views replaced by their rows. These views are not among [[views]]. */
  private def withRows(plan: LogicalPlan, hidden: Set[String]): LogicalPlan =
    plan.transformDownWithSubqueries {
      case relation: UnresolvedRelation if !relation.isStreaming =>
        read(relation, hidden)(view => session.table(view.sql).queryExecution.analyzed)
          .getOrElse(relation)
    }

  private def read(relation: UnresolvedRelation, hidden: Set[String])(
      rows: MaterializedView => LogicalPlan): Option[LogicalPlan] = {
    val parts = relation.multipartIdentifier
    if (NamesRead.isHidden(parts, hidden) || isTemporary(parts)) None
    else find(parts).map(view => SubqueryAlias(parts.last, rows(view)))
  }

  private def isTemporary(parts: Seq[String]): Boolean =
    parts.size == 1 && session.sessionState.catalog.getRawTempView(parts.head).isDefined

  private def find(parts: Seq[String]): Option[MaterializedView] =
    try catalog.findRead(catalog.identify(parts))
    catch { case _: AnalysisException => None }

  private def changesOf(view: MaterializedView): LogicalPlan = {
    found += view.name
    // Followed by snapshots, as every Iceberg table.
    if (view.isIceberg) session.table(view.sql).queryExecution.analyzed else changesAsTable(view)
  }

  private def changesAsTable(view: MaterializedView): LogicalPlan = {
    val name = s"_changelog_${UUID.randomUUID.toString.replace('-', '_')}"
    named += name
    stream(view).createOrReplaceTempView(name)
    // A streaming table never changes written rows, except by a recomputation.
    val isStreamingTable = view.definition.kind == ViewKind.StreamingTable
    val types = if (isStreamingTable) ", change_types => map('insert', '+I')" else ""
    val changeType = s"'${RowKind.ChangeTypeColumnName}'"
    session
      .sql(s"SELECT * FROM from_changelog(TABLE($name), $changeType$types)")
      .queryExecution
      .analyzed
      .transform { case changes: FromChangelog => changes.copy(repeatsBytes = true) }
  }

  private def stream(view: MaterializedView): DataFrame =
    if (view.isDelta) {
      val feed = session.readStream.option("readChangeFeed", "true").table(view.sql)
      feed.drop("_commit_version", "_commit_timestamp")
    } else {
      session.readStream.format("changelog-snapshots").option("table", view.sql).load()
    }
}
