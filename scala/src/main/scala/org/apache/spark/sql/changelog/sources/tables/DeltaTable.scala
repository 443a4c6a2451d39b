// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{DataFrame, SparkSession}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.errors.TableErrors

/**
 * A Delta table: by its change data feed, or else by the rows of the files that commits have removed
 * and added, deletion vectors applied, of which those that are in both cancel. Commits that only
 * move rows, such as those of `OPTIMIZE`, are passed over.
 */
private[tables] class DeltaTable(session: SparkSession, override val name: String)
    extends FollowedTable {

  override type Moment = TableVersion

  override def rowsOnlyCome: Boolean = false

  override def now(): TableVersion = SharedMoments.of(session, name)(versionOf(current))

  private def versionOf(snapshot: DeltaMethods.Snapshot): TableVersion =
    TableVersion(name, snapshot.id, columnsOf(snapshot.columns), snapshot.version.toString)

  /** Columns of the same names may be others: in the files they have names of their own, or are not there. */
  private def columnsOf(columns: DeltaMethods.Columns): String =
    TableVersion.fingerprint(columns.schema, columns.inFiles: _*)

  override def version(start: Option[TableVersion], moment: TableVersion): TableVersion = {
    start.foreach(checkFollows(_, moment))
    moment
  }

  override def rows(at: TableVersion): LogicalPlan = {
    checkSame(at, versionOf(current))
    asOf(at)
  }

  /** The same, whatever columns the table has got since. */
  def rowsOnce(at: TableVersion): LogicalPlan = {
    if (current.id != at.id) throw TableErrors.replaced(name, at.version)
    asOf(at)
  }

  private def asOf(at: TableVersion): LogicalPlan = {
    // Delta reads a table for which no version is asked as it is when the query is optimized
    try {
      val travelled = session.read.option("versionAsOf", at.version).table(name)
      FollowedTables.relationOf(travelled)
    } catch {
      case error @ DeltaTable.Error(condition) if DeltaTable.Gone(condition) =>
        throw lost(at, error)
    }
  }

  private def lost(from: TableVersion, error: Throwable): Throwable =
    TableErrors.changesLost(name, from.version, error.getMessage.linesIterator.next())

  override def size(since: TableVersion): Option[TableSize] = {
    val found = current
    checkFollows(since, versionOf(found))
    found.bytes.map { bytes =>
      val commits =
        if (found.version == since.number) Nil
        else commitsOf(found, since, found.version)
      val changed = commits.map { case (_, actions) =>
        DeltaCommitSize(DeltaMethods.commitOf(actions))
      }
      TableSize(bytes, changed.sum)
    }
  }

  /** The same since Delta's own stream has read it; none if that was another table. */
  def size(read: DeltaStreamOffset): Option[TableSize] = {
    val now = versionOf(current)
    if (now.id == read.table) size(now.at(read.version)) else None
  }

  override def changes(from: TableVersion, until: TableVersion): LogicalPlan = {
    val relation = FollowedTables.relationOf(session.table(name))
    val found = DeltaMethods.snapshotOf(relation)
    checkSame(until, versionOf(found))
    val commits = commitsOf(found, from, until.number)
    // those that were others meanwhile are read wrongly, if at all
    commits.flatMap(commit => DeltaMethods.columnsOf(commit._2)).foreach { columns =>
      if (columnsOf(columns) != until.columns) {
        throw TableErrors.columnsChanged(name, from.version)
      }
    }
    val columns = relation.output.map(_.name)
    def read(byFiles: Boolean): DataFrame = found
      .changes(session, commits, byFiles)
      .select((columns :+ RowKind.ChangeTypeColumnName).map(NetRows.quoted): _*)
    val changed =
      try {
        try read(byFiles = false)
        catch {
          case DeltaTable.Error(DeltaTable.NoFeed) => NetRows(read(byFiles = true), columns)
        }
      } catch {
        case error @ DeltaTable.Error(condition) if condition.startsWith(DeltaTable.Unlike) =>
          throw lost(from, error)
      }
    changed.queryExecution.analyzed
  }

  /** All that was committed after one version, up to another. */
  private def commitsOf(
      found: DeltaMethods.Snapshot,
      from: TableVersion,
      until: Long): Seq[(Long, Seq[AnyRef])] = {
    val expected = (from.number + 1) to until
    val commits = found.commits(expected.head, expected.last)
    if (commits.map(_._1) != expected) {
      val reason = "its log doesn't have all commits since then"
      throw TableErrors.changesLost(name, from.version, reason)
    }
    commits
  }

  /** A table of an earlier version is another one, or was restored by copying its folder. */
  private def checkFollows(start: TableVersion, now: TableVersion): Unit = {
    checkSame(start, now)
    if (start.number > now.number) throw TableErrors.replaced(name, start.version)
  }

  private def current: DeltaMethods.Snapshot =
    DeltaMethods.snapshotOf(FollowedTables.relationOf(session.table(name)))
}

private[changelog] object DeltaTable {

  /** The setting by which Delta refuses a version of longer ago than files of later ones stay. */
  val RefusesOldVersions =
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"

  /** What it says of a version that it doesn't read. */
  private val Gone = Set(
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION")

  /** What a change data feed has beside the table's columns. */
  val ColumnsOfFeed: Seq[String] =
    Seq(RowKind.ChangeTypeColumnName, "_commit_version", "_commit_timestamp")

  /** What Delta says if the change data feed was off. */
  val NoFeed = "DELTA_MISSING_CHANGE_DATA"

  /** How it begins to say that the table was another one at some version, as by columns that may be NULL. */
  val Unlike = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE"

  object Error {
    def unapply(error: Throwable): Option[String] = error match {
      case named: SparkThrowable => Option(named.getCondition)
      case _ => None
    }
  }
}
