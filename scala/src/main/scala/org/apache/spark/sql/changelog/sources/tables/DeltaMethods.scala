// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import java.lang.reflect.InvocationTargetException

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}

/**
 * What is called of Delta's own classes: by name, for they aren't compiled against, and need not be
 * there.
 */
private[tables] object DeltaMethods {

  /** Whether a relation reads a table of Delta's. */
  def isDelta(files: HadoopFsRelation): Boolean = files.location.getClass.getName == FileIndex

  /** Whether a version was asked for, so that the rows stay what they are. */
  def isTimeTravel(files: HadoopFsRelation): Boolean =
    isDelta(files) && call(files.location, "isTimeTravelQuery") == true

  /** The snapshot that a relation reads. */
  def snapshotOf(relation: LogicalPlan): Snapshot = relation match {
    case logical: LogicalRelation =>
      logical.relation match {
        case files: HadoopFsRelation =>
          new Snapshot(call(files.location, "getSnapshot"), logical.catalogTable)
        case other => throw new IllegalStateException(s"not a table of Delta's: $other")
      }
    case other => throw new IllegalStateException(s"not a table of Delta's: $other")
  }

  /** A table as of one version. */
  final class Snapshot(snapshot: AnyRef, table: Option[CatalogTable]) {
    private def metadata: AnyRef = call(snapshot, "metadata")
    private def log: AnyRef = call(snapshot, "deltaLog")

    def version: Long = call(snapshot, "version").asInstanceOf[Long]
    def id: String = call(metadata, "id").toString

    /**
     * What the files take that it consists of, as a file beside the commit tells. None without that: all
     * actions of the table would have to be gone through, which a refresh by changes doesn't need.
     */
    def bytes: Option[Long] =
      call(snapshot, "checksumOpt")
        .asInstanceOf[Option[AnyRef]]
        .map(call(_, "tableSizeBytes").asInstanceOf[Long])

    def columns: Columns = ofMetadata(metadata)

    def hasChangeFeed: Boolean = call(metadata, "configuration")
      .asInstanceOf[Map[String, String]]
      .exists { case (key, value) =>
        key.equalsIgnoreCase("delta.enableChangeDataFeed") && value.equalsIgnoreCase("true")
      }

    /** The commits from one version to another, both included, as far as the log has them. */
    def commits(first: Long, last: Long): Seq[(Long, Seq[AnyRef])] =
      call(log, "getChanges", Long.box(first), Long.box(last), table, Boolean.box(false))
        .asInstanceOf[Iterator[(Long, Seq[AnyRef])]]
        .toSeq

    /** The last batch that a query has written, as the table notes it, whatever it has called the table. */
    def lastBatch(queryId: String): Option[Long] =
      DeltaCommits.lastOf(queryId, call(snapshot, "transactions").asInstanceOf[Map[String, Long]])

    /**
     * What commits have changed.
     *
     * @param byFiles
     *   whether rows of the files that they add and remove are given, and not those of the change
     *   feed. Files that hold no other rows than those they replace are left out
     */
    def changes(
        session: SparkSession,
        commits: Seq[(Long, Seq[AnyRef])],
        byFiles: Boolean): DataFrame = {
      val last = commits.last._1
      val until = call(log, "getSnapshotAt", Long.box(last), None, table, Boolean.box(false))
      val reader = Class.forName(ChangeReader, true, snapshot.getClass.getClassLoader)
      val info = call(
        reader.getField("MODULE$").get(null),
        "changesToDF",
        until,
        Long.box(commits.head._1),
        Long.box(last),
        commits.iterator,
        session,
        table,
        Boolean.box(false),
        Boolean.box(byFiles),
        None)
      call(info, "fileChangeDf").asInstanceOf[DataFrame]
    }
  }

  /**
   * The columns of a table.
   *
   * @param inFiles
   *   what tells them from others of the same names in its files
   */
  final case class Columns(schema: StructType, inFiles: Seq[String])

  private def ofMetadata(metadata: AnyRef): Columns = {
    val schema = call(metadata, "schema").asInstanceOf[StructType]
    val partitioning = call(metadata, "partitionColumns").asInstanceOf[Seq[String]]
    Columns(schema, otherNames(schema) ++ partitioning.map(name => s"partitioned by $name"))
  }

  /** What columns are called in files, where that is otherwise. */
  private def otherNames(dataType: DataType): Seq[String] = dataType match {
    case struct: StructType =>
      struct.flatMap { field =>
        val name =
          if (field.metadata.contains(PhysicalName)) Some(field.metadata.getString(PhysicalName))
          else None
        name.filter(_ != field.name).map(name => s"${field.name} is $name") ++
          otherNames(field.dataType)
      }
    case array: ArrayType => otherNames(array.elementType)
    case map: MapType => otherNames(map.keyType) ++ otherNames(map.valueType)
    case _ => Nil
  }

  /** The columns that commits say the table has from then on. */
  def columnsOf(actions: Seq[AnyRef]): Seq[Columns] =
    actions.filter(_.getClass.getSimpleName == Metadata).map(ofMetadata)

  /**
   * A file that a commit adds, removes or tells changes by.
   *
   * @param bytes
   *   without rows that a deletion vector marks, as far as statistics tell how many those are
   * @param rows
   *   none if its statistics don't tell
   */
  final case class FileChange(
      path: String,
      bytes: Long,
      rows: Option[Long],
      changesData: Boolean = true,
      isGone: Boolean = false,
      isFeed: Boolean = false)

  /**
   * The files that a commit concerns.
   *
   * @param copied
   *   how many rows it wrote anew as they were, as far as it tells
   * @param replaced
   *   how many rows of the same files it took away or changed
   */
  final case class Commit(files: Seq[FileChange], copied: Long = 0, replaced: Long = 0)

  def commitOf(actions: Seq[AnyRef]): Commit = {
    val files = actions.flatMap { action =>
      val kind = action.getClass.getSimpleName
      def count(name: String) = call(action, name).asInstanceOf[Option[Long]]
      Option.when(Seq(Added, Removed, Feed).contains(kind)) {
        FileChange(
          call(action, "path").toString,
          count("estLogicalFileSize").getOrElse(call(action, "getFileSize").asInstanceOf[Long]),
          count("numLogicalRecords"),
          call(action, "dataChange") == true,
          isGone = kind == Removed,
          isFeed = kind == Feed)
      }
    }
    val metrics = actions
      .filter(_.getClass.getSimpleName == Info)
      .flatMap(call(_, "operationMetrics").asInstanceOf[Option[Map[String, String]]])
    def sum(names: Seq[String]) =
      metrics.flatMap(known => names.flatMap(known.get)).flatMap(_.toLongOption).sum
    Commit(files, sum(Copied), sum(Replaced))
  }

  /** What commits say of the batches that they write, by the name of the query. */
  def batchesOf(actions: Seq[AnyRef]): Map[String, Long] = actions
    .filter(_.getClass.getSimpleName == Transaction)
    .map(noted => call(noted, "appId").toString -> call(noted, "version").asInstanceOf[Long])
    .toMap

  /** What whoever made a commit has noted. */
  def noteOf(actions: Seq[AnyRef]): Option[String] = actions
    .find(_.getClass.getSimpleName == Info)
    .flatMap(call(_, "userMetadata").asInstanceOf[Option[String]])

  private def call(target: AnyRef, name: String, arguments: AnyRef*): AnyRef = {
    val method = target.getClass.getMethods
      .find(method => method.getName == name && method.getParameterCount == arguments.size)
      .getOrElse(throw new NoSuchMethodException(s"${target.getClass.getName}.$name"))
    try method.invoke(target, arguments: _*)
    catch { case wrapped: InvocationTargetException => throw wrapped.getCause }
  }

  private val FileIndex = "org.apache.spark.sql.delta.files.TahoeLogFileIndex"
  private val Added = "AddFile"
  private val Removed = "RemoveFile"
  private val Feed = "AddCDCFile"
  private val Metadata = "Metadata"
  private val PhysicalName = "delta.columnMapping.physicalName"
  private val Transaction = "SetTransaction"
  private val Info = "CommitInfo"

  /** What UPDATE, DELETE and MERGE call the rows of a file that they have left, and others. */
  private val Copied = Seq("numCopiedRows", "numTargetRowsCopied")
  private val Replaced =
    Seq("numUpdatedRows", "numDeletedRows", "numTargetRowsUpdated", "numTargetRowsDeleted")
  private val ChangeReader = "org.apache.spark.sql.delta.commands.cdc.CDCReader$"
}
