// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.datasources.{
  CatalogFileIndex,
  HadoopFsRelation,
  InMemoryFileIndex,
  LogicalRelation
}
import org.apache.spark.sql.sources.DataSourceRegister

import org.apache.spark.sql.changelog.RowKind

/** Tells how a table can be followed, if it can. */
object FollowedTables {

  /** How the table that `relation` reads is followed, or why it isn't. */
  def wayOf(session: SparkSession, relation: LogicalRelation): Either[String, FollowedWay] =
    relation.relation match {
      case _ if relation.output.exists(_.name.equalsIgnoreCase(RowKind.ChangeTypeColumnName)) =>
        Left(s"it has a column ${RowKind.ChangeTypeColumnName}")
      case _ if relation.output.size != relation.relation.schema.size =>
        Left("the query reads columns that say in which file a row is")
      case files: HadoopFsRelation =>
        val found = files.location match {
          case _ if DeltaMethods.isDelta(files) =>
            val hasFeed = DeltaMethods.snapshotOf(relation).hasChangeFeed
            val way = if (hasFeed) FollowedWay.DeltaFeed else FollowedWay.DeltaFiles
            nameOf(relation, "delta").map(way(_))
          case _: InMemoryFileIndex | _: CatalogFileIndex =>
            formatOf(files).flatMap(nameOf(relation, _)).map(FollowedWay.Files(_))
          case _ => None
        }
        found
          .filter(way => Try(isSame(session, way.name, relation)).getOrElse(false))
          .toRight("it is read by its place with options, and not by the name of a table")
      case _ => Left("nothing tells what has changed in it")
    }

  /** Whether a relation reads one version of a table, which stays as it is. */
  def isFixed(relation: LogicalRelation): Boolean = relation.relation match {
    case files: HadoopFsRelation => DeltaMethods.isTimeTravel(files)
    case _ => false
  }

  /** What a relation reads, as people call it. */
  def describe(relation: LogicalRelation): String =
    nameOf(relation, "files").getOrElse(relation.relation.toString)

  /**
   * How much a table holds, and how much has changed since it was read.
   *
   * @param folder
   *   where its source keeps what it needs, below a checkpoint
   */
  def sizeOf(session: SparkSession, since: TableVersion, folder: Path): Option[TableSize] =
    open(session, since.table, folder).size(since)

  private[tables] def open(session: SparkSession, name: String, folder: Path): FollowedTable =
    relationOf(session.table(name)).relation match {
      case files: HadoopFsRelation if DeltaMethods.isDelta(files) =>
        new DeltaTable(session, name)
      case _ => new FileTable(session, name, folder)
    }

  /** What a table is read by, below what Spark puts above it. */
  private[tables] def relationOf(table: DataFrame): LogicalRelation =
    table.queryExecution.analyzed
      .collectFirst { case relation: LogicalRelation => relation }
      .getOrElse(throw new IllegalStateException(s"no table: ${table.queryExecution.analyzed}"))

  /** Whether a name stands for the same as a relation, which may be read with options of its own. */
  private def isSame(session: SparkSession, name: String, relation: LogicalRelation): Boolean = {
    val named = relationOf(session.table(name))
    (named.relation, relation.relation) match {
      case (one: HadoopFsRelation, other: HadoopFsRelation) =>
        one.location.rootPaths == other.location.rootPaths && one.options == other.options &&
        one.schema == other.schema
      case _ => false
    }
  }

  private def nameOf(relation: LogicalRelation, format: String): Option[String] =
    relation.catalogTable.map(_.identifier.quotedString).orElse {
      relation.relation match {
        case files: HadoopFsRelation =>
          files.location.rootPaths match {
            case Seq(path) => Some(s"$format.${quoteIdentifier(path.toString)}")
            case _ => None
          }
        case _ => None
      }
    }

  private def formatOf(files: HadoopFsRelation): Option[String] = files.fileFormat match {
    case format: DataSourceRegister => Some(format.shortName())
    case _ => None
  }
}
