// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.delta.actions.DeletionVectorDescriptor.INLINE_DV_MARKER
import org.apache.spark.sql.delta.actions.{
  Action, AddCDCFile, AddFile, CommitInfo, FileAction, Metadata, RemoveFile, SetTransaction
}
import org.apache.spark.sql.delta.commands.cdc.CDCReader
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.delta.{DeltaColumnMapping, DeltaConfigs, Snapshot}
import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}

/** Delta has a release for this version of Spark. */
private[changelog] object DeltaRelease {
  def require(user: String): Unit = ()
}

/** Reads the log of Delta tables. Only this class and its callees load Delta's classes. */
private[delta] object DeltaSnapshots {

  def isTimeTravel(location: FileIndex): Boolean = indexOf(location).isTimeTravelQuery

  def of(location: FileIndex, table: Option[CatalogTable], since: Option[Long]): DeltaSnapshot = {
    val index = indexOf(location)
    val snapshot =
      if (index.isTimeTravelQuery || since.isEmpty) index.getSnapshot
      else index.deltaLog.update(checkIfUpdatedSinceTs = since, catalogTableOpt = table)
    new LoggedSnapshot(snapshot, table)
  }

  /** Returns an index of the files of the current version, if the version is `wanted`. */
  def pinned(location: FileIndex, wanted: Long): Option[FileIndex] = {
    val index = indexOf(location)
    val snapshot = index.getSnapshot
    Option.when(snapshot.version == wanted)(
      index.copy(snapshotAtAnalysis = snapshot, isTimeTravelQuery = true))
  }

  def indexOf(location: FileIndex): TahoeLogFileIndex = location match {
    case index: TahoeLogFileIndex => index
    case other => throw new IllegalStateException(s"not a Delta table: $other")
  }

  private class LoggedSnapshot(snapshot: Snapshot, table: Option[CatalogTable])
      extends DeltaSnapshot {
    override def version: Long = snapshot.version
    override def id: String = snapshot.metadata.id
    override def bytes: Option[Long] = snapshot.checksumOpt.map(_.tableSizeBytes)
    override def columns: DeltaColumns = columnsOf(snapshot.metadata)
    override def batches: Map[String, Long] = snapshot.transactions

    override def hasChangeFeed: Boolean =
      DeltaConfigs.CHANGE_DATA_FEED.fromMetaData(snapshot.metadata)

    override def files: Seq[Path] = snapshot.allFiles.collect().toSeq.flatMap { file =>
      val vector = Option(file.deletionVector).filterNot(_.storageType == INLINE_DV_MARKER)
      file.absolutePath(snapshot.deltaLog) +:
        vector.map(_.absolutePath(snapshot.deltaLog.dataPath)).toSeq
    }

    override def log(first: Long, last: Long): Seq[DeltaLogEntry] =
      snapshot.deltaLog
        .getChanges(first, last, table, failOnDataLoss = false)
        .map { case (version, actions) => new Commit(version, actions) }
        .toSeq

    override def changes(
        session: SparkSession,
        log: Seq[DeltaLogEntry],
        byFiles: Boolean): DataFrame = {
      val commits = log.iterator.collect { case commit: Commit =>
        commit.version -> commit.actions
      }
      val last = log.last.version
      val until = snapshot.deltaLog.getSnapshotAt(last, catalogTableOpt = table)
      val read = CDCReader.changesToDF(
        until,
        log.head.version,
        last,
        commits,
        session,
        table,
        useCoarseGrainedCDC = byFiles)
      castToImpl(read.fileChangeDf)
    }
  }

  private class Commit(override val version: Long, val actions: Seq[Action])
      extends DeltaLogEntry {

    override def columns: Seq[DeltaColumns] = actions.collect { case metadata: Metadata =>
      columnsOf(metadata)
    }

    override def batches: Map[String, Long] = actions.collect { case noted: SetTransaction =>
      noted.appId -> noted.version
    }.toMap

    override def note: Option[String] = info.flatMap(_.userMetadata)

    override def files: DeltaFileChanges = {
      val metrics = info.flatMap(_.operationMetrics).getOrElse(Map.empty)
      def sum(names: Seq[String]) = names.flatMap(metrics.get).flatMap(_.toLongOption).sum
      val changes = actions.collect { case file: FileAction => changeOf(file) }.flatten
      DeltaFileChanges(changes, sum(Copied), sum(Replaced))
    }

    private def info: Option[CommitInfo] = actions.collectFirst { case info: CommitInfo => info }
  }

  private def changeOf(file: FileAction): Option[DeltaFileChange] = {
    val change = DeltaFileChange(
      file.path,
      file.estLogicalFileSize.getOrElse(file.getFileSize),
      file.numLogicalRecords,
      file.dataChange,
      partition = Option(file.partitionValues).getOrElse(Map.empty))
    file match {
      case _: AddFile => Some(change)
      case _: RemoveFile => Some(change.copy(isGone = true))
      case _: AddCDCFile => Some(change.copy(isFeed = true))
      case _ => None
    }
  }

  private def columnsOf(metadata: Metadata): DeltaColumns =
    columnsOf(metadata.schema, metadata.partitionColumns.map(name => s"partitioned by $name"))

  private def columnsOf(schema: StructType, partitioning: Seq[String]): DeltaColumns =
    DeltaColumns(schema, otherNames(schema) ++ partitioning)(size =>
      columnsOf(StructType(schema.take(size)), partitioning))

  /** Returns the physical names of columns, unless equal to the logical names. */
  private def otherNames(dataType: DataType): Seq[String] = dataType match {
    case struct: StructType =>
      struct.flatMap { field =>
        val name =
          Option.when(DeltaColumnMapping.hasPhysicalName(field))(
            DeltaColumnMapping.getPhysicalName(field))
        name.filter(_ != field.name).map(name => s"${field.name} is $name") ++
          otherNames(field.dataType)
      }
    case array: ArrayType => otherNames(array.elementType)
    case map: MapType => otherNames(map.keyType) ++ otherNames(map.valueType)
    case _ => Nil
  }

  /** Metrics of UPDATE, DELETE and MERGE: the number of rows copied unchanged, and of changed rows. */
  private val Copied = Seq("numCopiedRows", "numTargetRowsCopied")
  private val Replaced =
    Seq("numUpdatedRows", "numDeletedRows", "numTargetRowsUpdated", "numTargetRowsDeleted")
}
