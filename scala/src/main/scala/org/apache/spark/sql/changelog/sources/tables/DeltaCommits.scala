// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

/**
 * A commit of a Delta table.
 *
 * @param batches
 *   the batches that it writes, by what the log calls their queries
 * @param note
 *   what its writer has had noted
 * @param changesRows
 *   whether rows are others from then on
 */
case class DeltaCommit(
    version: Long,
    batches: Map[String, Long],
    note: Option[String],
    changesRows: Boolean) {

  /** The batch of a query that it writes. */
  def batchOf(queryId: String): Option[Long] = DeltaCommits.lastOf(queryId, batches)
}

/** What the log of a Delta table says of those who have written it. */
object DeltaCommits {

  /** The commits from a version on that the log still has, the newest first; none of what is no Delta table. */
  def newestFirst(session: SparkSession, table: String, from: Long = 0): LazyList[DeltaCommit] =
    snapshotOf(session, table).fold(LazyList.empty[DeltaCommit]) { snapshot =>
      LazyList.iterate(snapshot.version)(_ - AtOnce).takeWhile(_ >= from).flatMap { last =>
        val commits = snapshot.commits(math.max(from, last - AtOnce + 1), last)
        commits.reverse.map { case (version, actions) =>
          DeltaCommit(
            version,
            DeltaMethods.batchesOf(actions),
            DeltaMethods.noteOf(actions),
            DeltaMethods.commitOf(actions).files.exists(_.changesData))
        }
      }
    }

  /** The last version of a table. */
  def lastVersion(session: SparkSession, table: String): Option[Long] =
    snapshotOf(session, table).map(_.version)

  /** The last batch that a query has written. */
  def lastBatch(session: SparkSession, table: String, queryId: String): Option[Long] =
    snapshotOf(session, table).flatMap(_.lastBatch(queryId))

  /** What the log calls a query that writes a table, under the name by which it does. */
  def application(queryId: String, table: String): String = s"$queryId/$table"

  /** The last batch of a query, by whatever name it writes, of those that the log has of all. */
  private[tables] def lastOf(queryId: String, batches: Map[String, Long]): Option[Long] =
    batches.collect {
      case (name, batch) if name.startsWith(application(queryId, table = "")) => batch
    }.maxOption

  private def snapshotOf(session: SparkSession, table: String): Option[DeltaMethods.Snapshot] =
    try
      FollowedTables
        .findRelation(session.table(table))
        .filter(isDelta)
        .map(DeltaMethods.snapshotOf)
    catch { case _: AnalysisException => None }

  private def isDelta(relation: LogicalPlan): Boolean = relation match {
    case FollowedTables.Files(files) => DeltaMethods.isDelta(files)
    case _ => false
  }

  /** How many commits are read in one go. */
  private val AtOnce = 50L
}
