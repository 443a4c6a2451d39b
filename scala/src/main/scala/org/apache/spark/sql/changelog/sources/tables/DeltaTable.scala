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
    TableVersion(
      name,
      snapshot.id,
      TableVersion.fingerprint(snapshot.schema),
      snapshot.version.toString)

  override def version(start: Option[TableVersion], moment: TableVersion): TableVersion = {
    start.foreach(checkFollows(_, moment))
    moment
  }

  override def rows(at: TableVersion): LogicalPlan = {
    val relation = FollowedTables.relationOf(session.table(name))
    val found = DeltaMethods.snapshotOf(relation)
    if (found.id != at.id) throw TableErrors.replaced(name, at.version)
    if (found.version == at.number) relation
    else {
      val travelled = session.read.option("versionAsOf", at.version).table(name)
      FollowedTables.relationOf(travelled)
    }
  }

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

  override def changes(from: TableVersion, until: TableVersion): LogicalPlan = {
    val relation = FollowedTables.relationOf(session.table(name))
    val found = DeltaMethods.snapshotOf(relation)
    if (found.id != until.id) throw TableErrors.replaced(name, from.version)
    val commits = commitsOf(found, from, until.number)
    val columns = relation.output.map(_.name)
    def read(byFiles: Boolean): DataFrame = found
      .changes(session, commits, byFiles)
      .select((columns :+ RowKind.ChangeTypeColumnName).map(NetRows.quoted): _*)
    val changed =
      try read(byFiles = false)
      catch {
        case error: SparkThrowable if error.getCondition == DeltaTable.NoFeed =>
          NetRows(read(byFiles = true), columns)
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

private object DeltaTable {

  /** What Delta says if the change data feed was off. */
  val NoFeed = "DELTA_MISSING_CHANGE_DATA"
}
