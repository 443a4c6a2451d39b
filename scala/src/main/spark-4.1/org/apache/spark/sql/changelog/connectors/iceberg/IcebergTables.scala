// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.iceberg

import java.lang.ref.Cleaner
import java.util.UUID

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.fs.Path
import org.apache.iceberg.hadoop.HadoopTableOperations
import org.apache.iceberg.spark.source.{SparkRewriteTable, SparkTable}
import org.apache.iceberg.spark.{ScanTaskSetManager, Spark3Util, SparkSchemaUtil, TimeTravel}
import org.apache.iceberg.types.{TypeUtil, Types => IcebergTypes}
import org.apache.iceberg.util.SnapshotUtil
import org.apache.iceberg.{
  BaseMetadataTable, DataOperations, FileScanTask, HasTableOperations, Table => IcebergApi,
  TableUtil, Transaction
}

import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.{sameType, toAttributes}
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Table, TableChange}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.functions.{col, lit}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import org.apache.spark.sql.changelog.RowKind

/** Reads snapshots of Iceberg tables. Only this object and its callees load Iceberg's classes. */
private[iceberg] object IcebergTables {

  /** Returns None for metadata tables, and for tags and snapshots with other columns than the table has now. */
  def find(table: Table): Option[IcebergTable] = table match {
    case loaded: SparkTable =>
      val found = new Loaded(loaded)
      val isData = !loaded.table.isInstanceOf[BaseMetadataTable]
      Option.when(isData && sameType(found.columns, columnsOf(loaded.table)))(found)
    case _ => None
  }

  /** Returns the name by which the branch or tag follows the name of the table. */
  def reference(table: Table, version: String): Option[String] = table match {
    case loaded: SparkTable =>
      Option(loaded.table.refs.get(version)).map { reference =>
        if (reference.isBranch) s"branch_$version" else s"tag_$version"
      }
    case _ => None
  }

  private class Loaded(loaded: SparkTable) extends IcebergTable {
    private val table = loaded.table

    override def id: String = table.uuid.toString

    override def columns: StructType =
      CatalogV2Util.v2ColumnsToStructType(loaded.columns)

    /** A catalog of folders finds the metadata in the folder, which may be a copy. */
    override def isCopied: Boolean = table match {
      case table: HasTableOperations =>
        table.operations match {
          case folder: HadoopTableOperations =>
            def pathOf(location: String) = new Path(location).toUri.getPath
            val file = folder.current.metadataFileLocation
            Option(file).exists(!pathOf(_).startsWith(s"${pathOf(table.location)}/"))
          case _ => false
        }
      case _ => false
    }

    override def hasNumbers: Boolean = TableUtil.formatVersion(table) > 1

    override def columnIds(count: Int): Seq[String] = {
      val first = IcebergTypes.StructType.of(table.schema.columns.asScala.take(count).asJava)
      TypeUtil.indexNameById(first).asScala.toSeq.sortBy(_._1).map { case (id, name) =>
        s"$name is $id"
      }
    }

    override def snapshot: Option[Long] = Option(loaded.snapshotId).map(_.longValue)

    override def refresh(): Unit = table.refresh()

    override def has(snapshot: Option[Long]): Boolean =
      snapshot.forall(table.snapshot(_) != null)

    override def rows(session: SparkSession, snapshot: Option[Long]): LogicalPlan =
      snapshot match {
        case None => LocalRelation(toAttributes(columns))
        // Iceberg reads a snapshot with the columns at its time. Such a read skips files by the query's conditions.
        case Some(id) if SnapshotUtil.schemaFor(table, id).schemaId == table.schema.schemaId =>
          relationOf(SparkTable.create(table, TimeTravel.version(id.toString)))
        case Some(id) => read(session, table, plan(id).map(_.task)).queryExecution.analyzed
      }

    override def difference(from: Option[Long], until: Option[Long]): IcebergDifference = {
      val steps = (from, until) match {
        case (Some(from), Some(until)) => changingSteps(from, until)
        case (None, None) => Nil
        case _ => Seq(from -> until)
      }
      val files = steps.map { case (from, until) =>
        val (before, after) = (from.fold(NoFiles)(plan), until.fold(NoFiles)(plan))
        before.diff(after) -> after.diff(before)
      }
      new Difference(table, files.flatMap(_._1).map(_.task), files.flatMap(_._2).map(_.task))
    }

    /**
     * Returns pairs of snapshots with all changes between them. The pairs leave out compaction, which changes files
     * only. After a rollback, or with expired snapshots in between, only both ends can be compared.
     */
    private def changingSteps(from: Long, until: Long): Seq[(Option[Long], Option[Long])] = {
      val newestFirst = SnapshotUtil.ancestorsOf(until, id => table.snapshot(id)).asScala
      val after = newestFirst.takeWhile(_.snapshotId != from).toSeq.reverse
      val isLinked =
        after.headOption.forall(first => Option(first.parentId).exists(_.longValue == from))
      if (!isLinked) Seq(Some(from) -> Some(until))
      else {
        val before = from +: after.map(_.snapshotId)
        before
          .zip(after)
          .filter { case (_, snapshot) => snapshot.operation != DataOperations.REPLACE }
          .map { case (from, snapshot) => (from, snapshot.snapshotId) }
          .foldLeft(List.empty[(Long, Long)]) {
            case ((first, last) :: others, (from, until)) if last == from =>
              (first, until) :: others
            case (steps, step) => step :: steps
          }
          .map { case (from, until) => Some(from) -> Some(until) }
      }
    }

    override def bytes(snapshot: Option[Long]): Long =
      snapshot.fold(NoFiles)(plan).map(_.task.sizeBytes).sum

    override def history: Iterator[IcebergSnapshot] =
      snapshot.iterator.flatMap { newest =>
        val newestFirst = SnapshotUtil.ancestorsOf(newest, id => table.snapshot(id))
        newestFirst.asScala.iterator.map { found =>
          IcebergSnapshot(
            found.snapshotId,
            found.sequenceNumber,
            found.timestampMillis,
            found.operation != DataOperations.REPLACE,
            found.summary.asScala.toMap)
        }
      }

    override def fenced: Table = new SparkTable(FencedOperations.of(table))

    override def commit(changes: Seq[TableChange], write: Option[Table => Unit]): Unit = {
      val (columns, properties) = changes.partition(_.isInstanceOf[TableChange.ColumnChange])
      val commit = FencedOperations.begin(table)
      if (columns.nonEmpty)
        Spark3Util.applySchemaChanges(commit.updateSchema(), columns.asJava).commit()
      if (properties.nonEmpty)
        Spark3Util.applyPropertyChanges(commit.updateProperties(), properties.asJava).commit()
      write match {
        case Some(write) => write(new SparkTable(commit.table))
        case None => appendNothing(commit)
      }
      commit.commitTransaction()
    }

    /** Adds a snapshot without changes of rows. The notes of batches stay in the newest snapshot. */
    private def appendNothing(commit: Transaction): Unit = {
      val append = commit.newFastAppend()
      val last = Option(commit.table.currentSnapshot).map(_.summary.asScala.toMap)
      val notes = last.fold(Map.empty[String, String])(IcebergCommits.notesIn)
      (notes + IcebergCommits.SameRows).foreach { case (name, note) => append.set(name, note) }
      append.commit()
    }

    private def plan(snapshot: Long): Seq[PlannedFile] =
      Using.resource(table.newScan.useSnapshot(snapshot).planFiles()) { tasks =>
        tasks.asScala.map { task =>
          val deletes = task.deletes.asScala.map(file => file.location -> file.contentOffset)
          PlannedFile(task.file.location, deletes.toSet)(task)
        }.toList
      }
  }

  private val NoFiles = Seq.empty[PlannedFile]

  /**
   * PlannedFile: a data file to read.
   *
   * @param deletes
   *   the position deletes, equality deletes and deletion vectors that apply: files, and places within files
   */
  private case class PlannedFile(path: String, deletes: Set[(String, java.lang.Long)])(
      val task: FileScanTask)

  private class Difference(table: IcebergApi, before: Seq[FileScanTask], after: Seq[FileScanTask])
      extends IcebergDifference {

    override def bytes: Long = (before ++ after).map(_.sizeBytes).sum

    override def rows(session: SparkSession): DataFrame = {
      def signed(tasks: Seq[FileScanTask], kind: String) =
        read(session, table, tasks).withColumn(RowKind.ChangeTypeColumnName, lit(kind))
      signed(before, "delete").union(signed(after, "insert"))
    }
  }

  private val cleaner = Cleaner.create()

  /** Reads a set of files, as the actions of Iceberg that rewrite files do. The set lives as long as the plan. */
  private def read(
      session: SparkSession,
      table: IcebergApi,
      tasks: Seq[FileScanTask]): DataFrame = if (tasks.isEmpty) {
    Dataset.ofRows(session, LocalRelation(toAttributes(columnsOf(table))))
  } else {
    val set = UUID.randomUUID.toString
    ScanTaskSetManager.get.stageTasks(table, set, tasks.asJava)
    val staged = new SparkRewriteTable(table, set)
    cleaner.register(staged, () => ScanTaskSetManager.get.removeTasks[FileScanTask](table, set))
    // Tables with row lineage add columns.
    val columns = columnsOf(table).fieldNames.toSeq.map(name => col(quoteIdentifier(name)))
    Dataset.ofRows(session, relationOf(staged)).select(columns: _*)
  }

  private def columnsOf(table: IcebergApi): StructType = SparkSchemaUtil.convert(table.schema)

  private def relationOf(table: Table): DataSourceV2Relation =
    DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty)
}
