// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.connectors.iceberg.{IcebergRelation, IcebergTable}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

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
      checkSame(start, snapshot)
      loadAt(start)
    }
    snapshot
  }

  override def rows(at: TableVersion): LogicalPlan =
    loadAt(at).rows(session, snapshotOf(at))

  override def changes(from: TableVersion, until: TableVersion): LogicalPlan = {
    val changed = difference(from, until).rows(session)
    RowDelta.net(changed, changed.columns.toSeq.init).queryExecution.analyzed
  }

  override def size(since: TableVersion): Option[TableSize] = {
    val found = newest()
    val until = versionOf(found)
    Some(TableSize(found.bytes(found.snapshot), difference(since, until).bytes))
  }

  private def difference(from: TableVersion, until: TableVersion) = {
    checkSame(from, until)
    loadAt(from)
    loadAt(until).difference(snapshotOf(from), snapshotOf(until))
  }

  /** Loads the table, and fails if the table no longer has a version. */
  private def loadAt(version: TableVersion): IcebergTable = {
    // The session's catalog may not know the version yet, if another session has found it.
    val cached = known(IcebergRelation.find(session, name))
    val isSame = versionOf(cached).copy(version = version.version) == version
    val isKnown = isSame && cached.has(snapshotOf(version))
    val found = if (isKnown) cached else newest()
    checkSame(version, versionOf(found))
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
    TableVersion(
      name,
      table.id,
      TableVersion.fingerprint(table.columns, table.columnIds: _*),
      table.snapshot.fold(NoSnapshot)(_.toString))
}

private object SnapshotTable {

  /** The version of a table before its first commit. */
  private val NoSnapshot = "none"

  private def snapshotOf(version: TableVersion): Option[Long] =
    Option.when(version.version != NoSnapshot)(version.version.toLong)
}
