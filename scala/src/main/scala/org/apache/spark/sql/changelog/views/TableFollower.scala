// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.expressions.{
  Alias, Attribute, AttributeReference, AttributeSet, SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Project, View}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.sql.types.StringType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.functions.FromChangelogFunction
import org.apache.spark.sql.changelog.plans.{FromChangelog, LookupTable}
import org.apache.spark.sql.changelog.sources.tables._

/**
 * TableFollower: replaces the tables of an analyzed query by streams of their changes.
 *
 * {{{
 *   Join                          Join
 *   :- orders                     :- FromChangelog
 *   +- customers         =>       :  +- changes of orders, a stream
 *                                 +- FromChangelog
 *                                    +- changes of customers, a stream
 * }}}
 * At this point, temporary views, common table expressions and ordinary views are replaced by their queries. Inputs of
 * `from_changelog` and `lookup` stay unchanged.
 *
 * @param keepsCopies
 *   whether file tables are compared with a copy of their rows
 * @param reader
 *   reads materialized views
 */
class TableFollower(session: SparkSession, keepsCopies: Boolean, reader: ViewReader) {
  private val sources = mutable.LinkedHashMap.empty[String, (TableTracking, DataSource)]
  private val unfollowedReasons = mutable.LinkedHashMap.empty[String, String]

  /** Returns the followed tables. */
  def followed: Seq[TableTracking] = sources.values.map(_._1).toSeq

  /** Returns the unfollowed tables, each with the reason. */
  def unfollowed: Seq[(String, String)] = unfollowedReasons.toSeq

  /** Returns whether a stream reads a followed table. */
  def readsFollowedTable(stream: StreamingRelation): Boolean =
    stream.sourceName == FollowedTables.SourceName

  def apply(plan: LogicalPlan): LogicalPlan = ofView(plan).getOrElse(ofOther(plan))

  /** Returns the changes of a materialized view stored as files, which is an ordinary view to Spark. */
  private def ofView(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case view: View => reader.changesOf(view)
    case _ => None
  }

  private def ofOther(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog if source.streaming => source
    case changes: FromChangelog =>
      val reason = "from_changelog reads the table without STREAM"
      tablesIn(changes).foreach(unfollowedReasons(_) = reason)
      changes
    case table: LookupTable =>
      table
    case view: View if view.isTempViewStoringAnalyzedPlan && FollowedTables.isTable(view.child) =>
      val name = view.desc.identifier.quotedString
      view.withNewChildren(Seq(follow(view.child, Some(name))))
    case view: View if view.isTempViewStoringAnalyzedPlan && isPadded(view.child) =>
      val name = view.desc.identifier.quotedString
      val padded = view.child
      view.withNewChildren(
        Seq(padded.withNewChildren(Seq(follow(padded.children.head, Some(name))))))
    case relation if FollowedTables.isTable(relation) => follow(relation, view = None)
    case leaf: LeafNode => leaf
    case other =>
      other.mapChildren(apply).transformExpressions { case subquery: SubqueryExpression =>
        subquery.withNewPlan(apply(subquery.plan))
      }
  }

  /** Returns whether a plan is a table below Spark's padding of CHAR columns. */
  private def isPadded(plan: LogicalPlan): Boolean = plan match {
    case Project(columns, table) if FollowedTables.isTable(table) =>
      columns.size == table.output.size && columns.zip(table.output).forall {
        case (column: Attribute, own) => column.semanticEquals(own)
        case (Alias(call: StaticInvoke, _), own) =>
          call.functionName == "readSidePadding" && call.references == AttributeSet(own)
        case _ => false
      }
    case _ => false
  }

  /**
   * Returns the table's changes as a table, or the unchanged relation.
   *
   * @param view
   *   the temporary view for exactly this table, if the query reads such a view
   */
  private def follow(relation: LogicalPlan, view: Option[String]): LogicalPlan =
    if (FollowedTables.isFixed(relation)) relation
    else
      FollowedTables.trackingOf(session, relation, view, keepsCopies) match {
        case Right(tracking) => changesOf(tracking, relation)
        case Left(reason) =>
          unfollowedReasons(FollowedTables.describe(relation)) = reason
          relation
      }

  private def tablesIn(plan: LogicalPlan): Seq[String] = plan.collectWithSubqueries {
    case relation if FollowedTables.isTable(relation) => FollowedTables.describe(relation)
  }

  private def changesOf(tracking: TableTracking, relation: LogicalPlan): LogicalPlan = {
    // Readers of a table share a source, and therefore read the same version.
    val source = sources.getOrElseUpdate(
      tracking.name,
      (tracking, DataSource(session, FollowedTables.SourceName, options = tracking.options)))
    val kind = AttributeReference(RowKind.ChangeTypeColumnName, StringType, nullable = false)()
    val output = if (tracking.tracksOnlyInserts) relation.output else relation.output :+ kind
    val stream = StreamingRelation(source._2, FollowedTables.SourceName, output)
    if (tracking.tracksOnlyInserts) stream
    else FromChangelogFunction.ofChanges(stream, kind.name, tracking.key)
  }
}
