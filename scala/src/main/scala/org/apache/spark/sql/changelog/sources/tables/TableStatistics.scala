// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import scala.util.Try

import org.apache.spark.sql.catalyst.catalog.{CatalogStatistics, CatalogTable, HiveTableRelation}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.datasources.{DataSource, LogicalRelation}
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation

import org.apache.spark.sql.changelog.sources.tables.FollowedTables.Files

/**
 * How much a table holds, as far as that is known without reading it.
 *
 * @param rows
 *   none if only the size is known
 */
final case class TableStatistics(table: String, rows: Option[BigInt], bytes: BigInt)

object TableStatistics {

  /**
   * What is known of the table that a leaf of a plan reads, at once or as a stream: what `ANALYZE TABLE`
   * has noted, what a format tells, and else the size of files: of Delta's the one its log has.
   */
  def of(session: SparkSession, leaf: LogicalPlan): Option[TableStatistics] = leaf match {
    case stream: StreamingRelation => ofStream(session, stream.dataSource)
    case stream: StreamingRelationV2 =>
      for {
        catalog <- stream.catalog
        identifier <- stream.identifier
        parts = catalog.name +: identifier.namespace.toSeq :+ identifier.name
        found <- named(session, parts.map(quoteIdentifier).mkString("."))
      } yield found
    case scan: DataSourceV2ScanRelation => known(session, scan.relation.name, scan.stats)
    case relation => ofRelation(session, relation)
  }

  private def ofStream(session: SparkSession, source: DataSource): Option[TableStatistics] =
    source.catalogTable.flatMap(analyzed).orElse {
      val name =
        if (source.className == TableSourceProvider.Name) source.options.get(FollowedWay.Table)
        else if (source.className.equalsIgnoreCase("delta")) {
          source.catalogTable
            .map(_.identifier.quotedString)
            .orElse(source.options.get("path").map(path => s"delta.${quoteIdentifier(path)}"))
        } else None
      name.flatMap(named(session, _))
    }

  private def named(session: SparkSession, name: String): Option[TableStatistics] =
    Try(FollowedTables.findRelation(session.table(name))).toOption.flatten
      .flatMap(ofRelation(session, _))
      .map(_.copy(table = name))

  private def ofRelation(session: SparkSession, relation: LogicalPlan): Option[TableStatistics] =
    relation match {
      case hive: HiveTableRelation => analyzed(hive.tableMeta)
      case logical: LogicalRelation =>
        logical.catalogTable.flatMap(analyzed).orElse {
          val name = FollowedTables.describe(logical)
          logical match {
            case Files(files) if DeltaMethods.isDelta(files) =>
              DeltaMethods.snapshotOf(logical).bytes.map(TableStatistics(name, None, _))
            case _ => known(session, name, logical.stats)
          }
        }
      case _ => None
    }

  private def analyzed(table: CatalogTable): Option[TableStatistics] =
    table.stats.map { stats: CatalogStatistics =>
      TableStatistics(table.identifier.quotedString, stats.rowCount, stats.sizeInBytes)
    }

  /** Spark says of what it does not know that it is as large as can be. */
  private def known(
      session: SparkSession,
      name: String,
      stats: Statistics): Option[TableStatistics] =
    Option.when(stats.sizeInBytes < session.sessionState.conf.defaultSizeInBytes) {
      TableStatistics(name, stats.rowCount, stats.sizeInBytes)
    }
}
