// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.classic.{DataFrame, SparkSession}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.connectors.delta.{
  Delta, DeltaColumns, DeltaCommitSize, DeltaLogEntry, DeltaRelation, DeltaSnapshot,
  DeltaStreamOffset
}
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * DeltaTable: a Delta table, followed by its change data feed. Without a feed, compares the rows of added and removed
 * files, with deletion vectors applied; equal rows cancel out. Commits that only move rows, such as `OPTIMIZE`, are
 * skipped.
 */
private[tables] class DeltaTable(session: SparkSession, override val name: String)
    extends FollowedTable {

  override type TableSnapshot = TableVersion

  override def tracksOnlyInserts: Boolean = false

  override def now(): TableVersion = SharedVersions.of(session, name)(versionOf(current))

  private def versionOf(snapshot: DeltaSnapshot): TableVersion =
    TableVersion(name, snapshot.id, columnsOf(snapshot.columns), snapshot.version.toString)

  /**
   * Returns a fingerprint of the columns. Columns with equal names can differ in their names in files, or in
   * partitioning.
   */
  private def columnsOf(columns: DeltaColumns): String =
    TableVersion.fingerprint(columns.schema, columns.inFiles: _*)

  /** Whether a version has the first columns of the table. Rows of that version have NULL in columns added since. */
  private def addsColumns(to: String): Boolean = {
    val size = to.takeWhile(_ != '-').toInt
    columnsOf(current.columns.first(size)) == to
  }

  /** Returns a version with the columns of the table now, if those only were added. */
  private def widened(at: TableVersion, now: TableVersion): TableVersion =
    if (addsColumns(to = at.columns)) at.copy(columns = now.columns) else at

  override def version(start: Option[TableVersion], snapshot: TableVersion): TableVersion = {
    start.foreach(checkFollows(_, snapshot))
    snapshot
  }

  override def rows(at: TableVersion): LogicalPlan = {
    val found = current
    val now = versionOf(found)
    checkSame(widened(at, now), now)
    val rows = asOf(at)
    val added = found.columns.schema.drop(rows.output.size).map { field =>
      Alias(Literal(null, field.dataType), field.name)()
    }
    if (added.isEmpty) rows else Project(rows.output ++ added, rows)
  }

  /** Returns the rows of a version, even if the table's columns have changed since. */
  def rowsOnce(at: TableVersion): LogicalPlan = {
    if (current.id != at.id)
      throw analysis("CHANGELOG_TABLE_REPLACED", "table" -> name, "version" -> at.version)
    asOf(at)
  }

  private def asOf(at: TableVersion): LogicalPlan =
    // Names the version, because Delta otherwise reads the version current at the query's optimization.
    try {
      val found = DeltaRelation.unapply(FollowedTables.lookUp(session, name))
      // Delta would read the log again for a named version.
      found.flatMap(_.pinnedAt(at.number)).getOrElse {
        val travelled = session.read.option("versionAsOf", at.version).table(name)
        FollowedTables.relationOf(travelled)
      }
    } catch {
      case error @ Delta.Error(condition) if Delta.VersionGone(condition) =>
        throw lost(at, error)
    }

  private def lost(from: TableVersion, error: Throwable): Throwable =
    analysis(
      "CHANGELOG_TABLE_CHANGES_LOST",
      "table" -> name,
      "version" -> from.version,
      "reason" -> error.getMessage.linesIterator.next())

  override def size(since: TableVersion): Option[TableSize] = {
    val found = current
    checkFollows(since, versionOf(found))
    found.bytes.map { bytes =>
      val commits =
        if (found.version == since.number) Nil
        else commitsOf(found, since, found.version)
      TableSize(bytes, commits.map(commit => DeltaCommitSize(commit.files)).sum)
    }
  }

  /**
   * Returns the size of the table and of the changes since Delta's own stream has read the table. Returns None if the
   * stream read another table.
   */
  def size(read: DeltaStreamOffset): Option[TableSize] = {
    val now = versionOf(current)
    if (now.id == read.table) size(now.at(read.version)) else None
  }

  /**
   * Returns the partitions with changed rows. Returns None if the columns have changed, or have different names in
   * files.
   */
  def changedPartitions(
      from: TableVersion,
      until: TableVersion,
      columns: Set[String]): Option[Seq[Map[String, String]]] = {
    val found = current
    val isSameTable = from.id == until.id && from.columns == until.columns &&
      from.number < until.number && found.columns.inFiles.forall(_.startsWith("partitioned by "))
    if (!isSameTable) None
    else {
      val commits = commitsOf(found, from, until.number)
      val files = commits.flatMap(_.files.files).filter(_.changesData)
      // Delta omits some columns with the value NULL.
      val partitions = files.map { file =>
        columns.map(name => name -> file.partition.getOrElse(name, null)).toMap
      }.distinct

      Option.when(
        commits.forall(_.columns.isEmpty) && files.forall(_.partition.keySet.subsetOf(columns)))(
        partitions)
    }
  }

  override def changes(from: TableVersion, until: TableVersion): LogicalPlan = {
    val relation = FollowedTables.lookUp(session, name)
    val found = current
    checkSame(until, versionOf(found))
    val commits = commitsOf(found, from, until.number)
    // Delta misreads or rejects columns that were different in between.
    commits.flatMap(_.columns).foreach { columns =>
      if (!addsColumns(to = columnsOf(columns))) {
        throw analysis(
          "CHANGELOG_TABLE_COLUMNS_CHANGED",
          "table" -> name,
          "version" -> from.version)
      }
    }
    val columns = relation.output.map(_.name)
    def read(byFiles: Boolean): DataFrame = found
      .changes(session, commits, byFiles)
      .select((columns :+ RowKind.ChangeTypeColumnName).map(RowDelta.quoted): _*)
    def ofFiles = RowDelta.net(read(byFiles = true), columns, RowDelta.NetOfRead)
    val changed =
      try {
        try if (found.hasChangeFeed) read(byFiles = false) else ofFiles
        catch { case Delta.Error(Delta.NoFeed) => ofFiles }
      } catch {
        case error @ Delta.Error(condition) if Delta.hadOtherColumns(condition) =>
          throw lost(from, error)
      }
    changed.queryExecution.analyzed
  }

  /** Returns the commits after one version, up to another. */
  private def commitsOf(
      found: DeltaSnapshot,
      from: TableVersion,
      until: Long): Seq[DeltaLogEntry] = {
    val expected = (from.number + 1) to until
    val commits = found.log(expected.head, expected.last)
    if (commits.map(_.version) != expected) {
      val reason = "its log doesn't have all commits since then"
      throw analysis(
        "CHANGELOG_TABLE_CHANGES_LOST",
        "table" -> name,
        "version" -> from.version,
        "reason" -> reason)
    }
    commits
  }

  /**
   * Rejects a table with a lower version than the last one read. The table was replaced, or restored by a copy of its
   * folder.
   */
  private def checkFollows(start: TableVersion, now: TableVersion): Unit = {
    checkSame(widened(start, now), now)
    if (start.number > now.number)
      throw analysis("CHANGELOG_TABLE_REPLACED", "table" -> name, "version" -> start.version)
  }

  private def current: DeltaSnapshot = SharedVersions.lookup(session, s"snapshot of $name") {
    FollowedTables.lookUp(session, name) match {
      case DeltaRelation(table) => table.snapshotSince(SharedVersions.began(session))
      case other => throw new IllegalStateException(s"not a Delta table: $other")
    }
  }
}
