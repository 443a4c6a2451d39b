// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.compat.SparkChanges
import org.apache.spark.sql.changelog.connectors.iceberg.{IcebergRelation, IcebergTable}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/** ChangingTable: a table whose catalog returns the changes between two versions, as `FROM t CHANGES` does. */
private[tables] class ChangingTable(session: SparkSession, override val name: String)
    extends FollowedTable {
  import ChangingTable._

  override type TableSnapshot = TableVersion

  override def tracksOnlyInserts: Boolean = false

  override def now(): TableVersion =
    SharedVersions.of(session, name)(versionOf(name, read(session, name)))

  override def version(start: Option[TableVersion], snapshot: TableVersion): TableVersion = {
    start.foreach(checkSame(_, snapshot))
    snapshot
  }

  override def rows(at: TableVersion): LogicalPlan = {
    val found = read(session, name)
    val there = versionOf(name, found)
    checkSame(at, there)
    if (there == at) found
    else {
      val travelled = session.read.option("versionAsOf", at.version).table(name)
      FollowedTables.relationOf(travelled)
    }
  }

  override def changes(from: TableVersion, until: TableVersion): LogicalPlan = {
    val found = read(session, name)
    checkSame(until, versionOf(name, found))
    val columns = found.output.map(_.name) :+ RowKind.ChangeTypeColumnName
    val changed =
      try changesOf(session, name, from.version, until.version)
      catch {
        case NonFatal(error) =>
          val reason = Option(error.getMessage).getOrElse(error.toString)
          throw analysis(
            "CHANGELOG_TABLE_CHANGES_LOST",
            "table" -> name,
            "version" -> from.version,
            "reason" -> reason.linesIterator.nextOption().getOrElse(error.toString))
      }
    changed.select(columns.map(RowDelta.quoted): _*).queryExecution.analyzed
  }

  /** Returns None, because catalogs don't report the amount of changes. */
  override def size(since: TableVersion): Option[TableSize] = None
}

private[tables] object ChangingTable {

  /** Returns whether a table's catalog returns changes. */
  def isOne(session: SparkSession, name: String): Boolean =
    FollowedTables.relationOf(session.table(name)) match {
      case relation: DataSourceV2Relation =>
        Option(relation.table.version).exists { version =>
          Try(changesOf(session, name, version, version)).isSuccess
        }
      case _ => false
    }

  private def read(session: SparkSession, name: String): DataSourceV2Relation =
    FollowedTables.relationOf(session.table(name)) match {
      case relation: DataSourceV2Relation => relation
      case other => throw new IllegalStateException(s"not a table of a catalog: $other")
    }

  private def versionOf(name: String, relation: DataSourceV2Relation): TableVersion =
    TableVersion(
      name,
      Option(relation.table.id).getOrElse(""),
      TableVersion.fingerprint(fromAttributes(relation.output)),
      relation.table.version)

  /**
   * Returns the changes after one version, up to another. Moved rows may appear as inserts and deletes, which cancel
   * out.
   */
  private def changesOf(
      session: SparkSession,
      name: String,
      from: String,
      until: String): DataFrame =
    SparkChanges(
      session.read
        .option("startingVersion", from)
        .option("startingBoundInclusive", "false")
        .option("endingVersion", until)
        .option("deduplicationMode", "none"),
      name)
}

/**
 * SnapshotTable: an Iceberg table, followed by its snapshots. The rows of files that differ between two snapshots, or
 * have other deletes, are compared. Equal rows cancel out. Compaction is skipped.
 */
private[tables] class SnapshotTable(session: SparkSession, override val name: String)
    extends FollowedTable {
  import SnapshotTable._

  override type TableSnapshot = TableVersion

  override def tracksOnlyInserts: Boolean = false

  override def now(): TableVersion = SharedVersions.of(session, name)(versionOf(newest()))

  override def version(start: Option[TableVersion], snapshot: TableVersion): TableVersion = {
    start.foreach { start =>
      val found = loadAt(start)
      checkSame(widened(start, found), widened(snapshot, found))
    }
    snapshot
  }

  /**
   * Returns a version with the columns of the table now, if columns were only added at the end. Iceberg reads rows of
   * that version with NULL or a default in these columns.
   */
  private def widened(at: TableVersion, now: IcebergTable): TableVersion = {
    val size = at.columns.takeWhile(_ != '-').toInt
    if (columnsOf(now, size) == at.columns) at.copy(columns = columnsOf(now)) else at
  }

  override def rows(at: TableVersion): LogicalPlan =
    Dataset
      .ofRows(session, loadAt(at).rows(session, snapshotOf(at)))
      .select(columns.map(RowDelta.quoted): _*)
      .queryExecution
      .analyzed

  override def changes(from: TableVersion, until: TableVersion): LogicalPlan = {
    val changed = difference(from, until)
      .rows(session)
      .select((columns :+ RowKind.ChangeTypeColumnName).map(RowDelta.quoted): _*)
    RowDelta.net(changed, columns, RowDelta.NetOfRead).queryExecution.analyzed
  }

  /** The columns of the source. The table may have got others since. */
  private lazy val columns: Seq[String] =
    FollowedTables.lookUp(session, name).output.map(_.name)

  override def size(since: TableVersion): Option[TableSize] = {
    val found = newest()
    val until = versionOf(found)
    Some(TableSize(found.bytes(found.snapshot), difference(since, until).bytes))
  }

  private def difference(from: TableVersion, until: TableVersion) = {
    loadAt(from)
    val found = loadAt(until)
    checkSame(widened(from, found), widened(until, found))
    found.difference(snapshotOf(from), snapshotOf(until))
  }

  /** Loads the table, and fails if the table no longer has a version. */
  private def loadAt(version: TableVersion): IcebergTable = {
    // The session's catalog may not know the version yet, if another session has found it.
    val cached = known(IcebergRelation.find(session, name))
    def isSame(found: IcebergTable) =
      versionOf(found).copy(version = version.version) == widened(version, found)
    val isKnown = isSame(cached) && cached.has(snapshotOf(version))
    val found = if (isKnown) cached else newest()
    checkSame(widened(version, found), versionOf(found))
    if (!found.has(snapshotOf(version))) {
      throw analysis(
        "CHANGELOG_TABLE_CHANGES_LOST",
        "table" -> name,
        "version" -> version.version,
        "reason" -> "this snapshot has expired")
    }
    found
  }

  private def newest(): IcebergTable = known(IcebergRelation.newest(session, name))

  private def known(found: Option[IcebergTable]): IcebergTable =
    found.getOrElse(throw new IllegalStateException(s"$name is not an Iceberg table"))

  private def versionOf(table: IcebergTable): TableVersion =
    TableVersion(name, table.id, columnsOf(table), table.snapshot.fold(NoSnapshot)(_.toString))

  /** Returns a fingerprint of the first columns of a table. */
  private def columnsOf(table: IcebergTable, count: Int = Int.MaxValue): String =
    TableVersion.fingerprint(StructType(table.columns.take(count)), table.columnIds(count): _*)
}

private object SnapshotTable {

  /** The version of a table before its first commit. */
  private val NoSnapshot = "none"

  private def snapshotOf(version: TableVersion): Option[Long] =
    Option.when(version.version != NoSnapshot)(version.version.toLong)
}
