// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.collection.mutable

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{DataSource, LogicalRelation}
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.sql.types.StringType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.functions.FromChangelogFunction
import org.apache.spark.sql.changelog.plans.{FromChangelog, LookupTable}
import org.apache.spark.sql.changelog.sources.tables._

/**
 * Reads the tables of an analyzed query as tables that change.
 *
 * {{{
 *   Join                          Join
 *   :- orders                     :- FromChangelog
 *   +- customers         =>       :  +- changes of orders, a stream
 *                                 +- FromChangelog
 *                                    +- changes of customers, a stream
 * }}}
 * By now temporary views, common tables and other views have been replaced by what they read. What is
 * below `from_changelog` or `lookup` is read as those say.
 */
class TableFollower(session: SparkSession) {
  private val sources = mutable.LinkedHashMap.empty[String, (FollowedWay, DataSource)]
  private val left = mutable.LinkedHashMap.empty[String, String]

  /** The tables that are followed. */
  def followed: Seq[FollowedWay] = sources.values.map(_._1).toSeq

  /** The tables that are not, and why. */
  def others: Seq[(String, String)] = left.toSeq

  def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case source: FromChangelog if source.streaming => source
    case changes: FromChangelog =>
      tablesIn(changes).foreach(left(_) = "it is read by from_changelog without STREAM")
      changes
    case table: LookupTable =>
      table
    case relation: LogicalRelation
        if !relation.isStreaming && !FollowedTables.isFixed(relation) =>
      FollowedTables.wayOf(session, relation) match {
        case Right(way) => changesOf(way, relation)
        case Left(reason) =>
          left(tableOf(relation)) = reason
          relation
      }
    case relation: DataSourceV2Relation if relation.timeTravelSpec.nonEmpty => relation
    case table @ (_: DataSourceV2Relation | _: HiveTableRelation) =>
      left(tableOf(table)) = "nothing tells what has changed in it"
      table
    case leaf: LeafNode => leaf
    case other =>
      other.mapChildren(apply).transformExpressions { case subquery: SubqueryExpression =>
        subquery.withNewPlan(apply(subquery.plan))
      }
  }

  private def tablesIn(plan: LogicalPlan): Seq[String] = plan.collectWithSubqueries(tableOf)

  /** What a table that is read is called. */
  private val tableOf: PartialFunction[LogicalPlan, String] = {
    case relation: LogicalRelation => FollowedTables.describe(relation)
    case relation: DataSourceV2Relation => relation.name
    case table: HiveTableRelation => table.tableMeta.identifier.quotedString
  }

  private def changesOf(way: FollowedWay, relation: LogicalRelation): LogicalPlan = {
    // one source for all that read the table, so that they see it at one moment
    val source = sources.getOrElseUpdate(
      way.name,
      (way, DataSource(session, TableSourceProvider.Name, options = Map("table" -> way.name))))
    val kind = AttributeReference(RowKind.ChangeTypeColumnName, StringType, nullable = false)()
    val output = if (way.rowsOnlyCome) relation.output else relation.output :+ kind
    val stream = StreamingRelation(source._2, TableSourceProvider.Name, output)
    if (way.rowsOnlyCome) stream
    else FromChangelogFunction.ofChanges(stream, kind.name)
  }
}
