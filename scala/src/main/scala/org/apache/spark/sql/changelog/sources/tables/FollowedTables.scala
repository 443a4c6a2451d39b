// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{
  CatalogFileIndex, FileIndex, HadoopFsRelation, InMemoryFileIndex, LogicalRelation
}
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.JdbcReading
import org.apache.spark.sql.changelog.connectors.delta.{Delta, DeltaRelation, DeltaStreamOffset}
import org.apache.spark.sql.changelog.connectors.iceberg.IcebergRelation

/** FollowedTables: chooses the tracking method of a table. */
object FollowedTables {
  val SourceName = "changelog-table-changes"

  /**
   * Returns how to follow the table of `relation`, or why not.
   *
   * @param relation
   *   a relation for which [[isTable]] is true
   * @param view
   *   the temporary view for exactly this relation, if the query reads such a view
   * @param keepsCopies
   *   whether file tables are compared with a copy, too
   */
  def trackingOf(
      session: SparkSession,
      relation: LogicalPlan,
      view: Option[String],
      keepsCopies: Boolean): Either[String, TableTracking] =
    relation.output.map(_.name).find(isReservedName(_, relation)) match {
      case Some(column) => Left(s"the name of the column $column is reserved for change data")
      case None if relation.output.size != numColumns(relation) =>
        Left("the query reads the file metadata of the rows")
      case None => trackingOfNamed(session, relation, view, keepsCopies)
    }

  private def trackingOfNamed(
      session: SparkSession,
      relation: LogicalPlan,
      view: Option[String],
      keepsCopies: Boolean): Either[String, TableTracking] = {
    val name =
      nameOf(relation).filter(name => Try(isSame(session, name, relation)).getOrElse(false))
    relation match {
      case DeltaRelation(table) =>
        val hasFeed = table.snapshotSince(SharedVersions.began(session)).hasChangeFeed
        name
          .map(name =>
            if (hasFeed) TableTracking.deltaFeed(name) else TableTracking.deltaFiles(name))
          .toRight(ReadByPath)
      case Files(files) if name.nonEmpty && !keepsCopies && isListed(files) =>
        Right(TableTracking.files(name.get))
      case IcebergRelation(_) => name.map(TableTracking.snapshots).toRight(ReadByPath)
      case _ if name.exists(ChangingTable.isOne(session, _)) =>
        Right(TableTracking.changes(name.get))
      case _ =>
        name.orElse(view).toRight(ReadByPath).flatMap(ComparedTable.trackingOf(_, relation))
    }
  }

  /** Returns whether a column's name is reserved for change data. */
  private def isReservedName(column: String, relation: LogicalPlan): Boolean = {
    val names = relation match {
      case DeltaRelation(_) => Delta.ColumnsOfFeed
      case _ => Seq(RowKind.ChangeTypeColumnName)
    }
    names.exists(_.equalsIgnoreCase(column))
  }

  private val ReadByPath = "the query reads the table by path or options instead of by name"

  /** Returns whether a plan is a relation that reads a table, which may change. */
  def isTable(plan: LogicalPlan): Boolean = plan match {
    case relation: LogicalRelation => !relation.isStreaming
    case _: DataSourceV2Relation | _: HiveTableRelation => true
    case _ => false
  }

  /** Returns whether a relation reads a fixed version of a table. */
  def isFixed(relation: LogicalPlan): Boolean = relation match {
    case DeltaRelation(table) => table.isTimeTravel
    case table: DataSourceV2Relation =>
      table.timeTravelSpec.nonEmpty && IcebergRelation.reference(table).isEmpty
    case _ => false
  }

  /** Returns the version of a Delta table named by the query, if any. */
  def fixedVersion(relation: LogicalPlan): Option[Long] = relation match {
    case DeltaRelation(table) if table.isTimeTravel => Some(table.snapshot.version)
    case _ => None
  }

  /** Returns a name of the relation for people. */
  def describe(relation: LogicalPlan): String = relation match {
    case logical: LogicalRelation => nameOf(logical).getOrElse(logical.relation.toString)
    case table: DataSourceV2Relation => table.name
    case other => nameOf(other).getOrElse(other.nodeName)
  }

  /**
   * Returns the size of a table, and the amount changed since the last read.
   *
   * @param folder
   *   the folder of the source's files, below a checkpoint
   */
  def sizeOf(
      session: SparkSession,
      tracking: TableTracking,
      since: TableVersion,
      folder: Path): Option[TableSize] =
    open(session, tracking.options, folder).size(since)

  /** Returns the sizes for a Delta table read by its feed. Returns None if the stream read another table. */
  def sizeOf(session: SparkSession, table: String, read: DeltaStreamOffset): Option[TableSize] =
    new DeltaTable(session, table).size(read)

  /** Returns the partition columns of a Delta table, and no columns for different tables. */
  def partitionsOf(session: SparkSession, tracking: TableTracking): StructType =
    filesOf(session, tracking).fold(new StructType)(_.partitionSchema)

  /** Lists the current files of a Delta table by partition, once. Returns None for different tables. */
  def listed(session: SparkSession, tracking: TableTracking): Option[FileIndex] =
    filesOf(session, tracking).map { files =>
      val directories = files.location.listFiles(Nil, Nil)
      new ListedFiles(files.location.rootPaths, files.partitionSchema, directories)
    }

  /** Returns the partitions with changed rows, as values written by Delta. Returns None if unknown. */
  def changedPartitions(
      session: SparkSession,
      tracking: TableTracking,
      from: TableVersion,
      until: TableVersion): Option[Seq[Map[String, String]]] = {
    val columns = partitionsOf(session, tracking).fieldNames.toSet
    try new DeltaTable(session, tracking.name).changedPartitions(from, until, columns)
    catch { case _: AnalysisException => None }
  }

  /**
   * Returns whether two checkpoints have read equal versions of a table.
   *
   * @param from
   *   a version, and the folder of the source's files in the version's checkpoint
   */
  def isSameVersion(
      session: SparkSession,
      tracking: TableTracking,
      from: (Path, TableVersion),
      until: (Path, TableVersion)): Boolean = {
    def listed(read: (Path, TableVersion)) =
      new FileListings(read._1, session.sessionState.newHadoopConf()).read(read._2.number)
    if (tracking.isDelta || tracking.isSnapshots) from._2 == until._2
    else tracking.isFiles && from._2.columns == until._2.columns && listed(from) == listed(until)
  }

  private def filesOf(session: SparkSession, tracking: TableTracking): Option[HadoopFsRelation] =
    if (tracking.isDelta) Files.unapply(lookUp(session, tracking.name)) else None

  /**
   * Opens a table by its tracking method.
   *
   * @param options
   *   the options of [[TableSourceProvider]]
   */
  private[tables] def open(
      session: SparkSession,
      options: Map[String, String],
      folder: Path): FollowedTable = {
    val name = options(TableTracking.Table)
    options.get(TableTracking.By) match {
      case Some(TableTracking.ByChanges) => new ChangingTable(session, name)
      case Some(TableTracking.BySnapshots) => new SnapshotTable(session, name)
      case Some(_) => new ComparedTable(session, name, folder)
      case None =>
        lookUp(session, name) match {
          case DeltaRelation(_) => new DeltaTable(session, name)
          case _ => new FileTable(session, name, folder)
        }
    }
  }

  /** Returns the relation of a table, as found first by the running statement. */
  private[tables] def lookUp(session: SparkSession, name: String): LogicalPlan =
    SharedVersions.lookup(session, name)(relationOf(session.table(name)))

  /** Returns the relation of a table, below the nodes added by Spark. */
  private[tables] def relationOf(table: DataFrame): LogicalPlan =
    findRelation(table).getOrElse {
      throw new IllegalStateException(s"no table: ${table.queryExecution.analyzed}")
    }

  /** Returns the relation of a table, or None for other data frames. */
  private[tables] def findRelation(table: DataFrame): Option[LogicalPlan] =
    table.queryExecution.analyzed.collectFirst { case relation if isTable(relation) => relation }

  /** Returns the relation of a table, with its current files. */
  private[tables] def current(session: SparkSession, name: String): LogicalPlan = {
    val known = lookUp(session, name) match {
      case logical: LogicalRelation => logical.catalogTable
      case hive: HiveTableRelation => Some(hive.tableMeta)
      case _ => None
    }
    known.foreach(table => session.sessionState.catalog.refreshTable(table.identifier))
    relationOf(session.table(name))
  }

  /** Returns whether a name gives an equal relation. The given relation may have further options. */
  private def isSame(session: SparkSession, name: String, relation: LogicalPlan): Boolean =
    (lookUp(session, name), relation) match {
      case (Files(one), Files(other)) =>
        one.location.rootPaths == other.location.rootPaths && one.options == other.options &&
        one.schema == other.schema
      case (one: DataSourceV2Relation, other: DataSourceV2Relation) =>
        one.table.getClass == other.table.getClass && one.options == other.options
      case (one, other) =>
        def parameters(plan: LogicalPlan) = JdbcReading.of(plan).map(_.parameters)
        one.getClass == other.getClass && parameters(one) == parameters(other) &&
        fromAttributes(one.output) == fromAttributes(other.output)
    }

  private def nameOf(relation: LogicalPlan): Option[String] = relation match {
    case hive: HiveTableRelation => Some(hive.tableMeta.identifier.quotedString)
    case table: DataSourceV2Relation =>
      for {
        catalog <- table.catalog
        identifier <- table.identifier
      } yield (catalog.name +: identifier.namespace.toSeq :+ identifier.name)
        .concat(IcebergRelation.reference(table))
        .map(quoteIdentifier)
        .mkString(".")
    case logical: LogicalRelation =>
      logical.catalogTable.map(_.identifier.quotedString).orElse {
        logical match {
          case Files(files) =>
            files.location.rootPaths match {
              case Seq(path) =>
                formatOf(logical, files).map(format =>
                  s"$format.${quoteIdentifier(path.toString)}")
              case _ => None
            }
          case _ => None
        }
      }
    case _ => None
  }

  private def formatOf(relation: LogicalPlan, files: HadoopFsRelation): Option[String] =
    relation match {
      case DeltaRelation(_) => Some("delta")
      case _ => nameOfFormat(files)
    }

  private def nameOfFormat(files: HadoopFsRelation): Option[String] = files.fileFormat match {
    case format: DataSourceRegister => Some(format.shortName())
    case _ => None
  }

  /** Returns whether the table consists of every file in the table's folders. */
  private def isListed(files: HadoopFsRelation): Boolean = files.location match {
    case _: InMemoryFileIndex | _: CatalogFileIndex => nameOfFormat(files).nonEmpty
    case _ => false
  }

  private def numColumns(relation: LogicalPlan): Int = relation match {
    case logical: LogicalRelation => logical.relation.schema.size
    case table: DataSourceV2Relation => table.table.columns.length
    case other => other.output.size
  }

  private[sources] object Files {
    def unapply(plan: LogicalPlan): Option[HadoopFsRelation] = plan match {
      case logical: LogicalRelation =>
        logical.relation match {
          case files: HadoopFsRelation => Some(files)
          case _ => None
        }
      case _ => None
    }
  }
}
