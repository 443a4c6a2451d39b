// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.classic.SparkSession

/**
 * A commit of a Delta table.
 *
 * @param batches
 *   the batches that it writes, by application
 * @param note
 *   the value of [[Delta.CommitNote]] when it was made
 * @param changesRows
 *   whether the table has other rows from then on
 */
private[changelog] case class DeltaCommit(
    version: Long,
    batches: Map[String, Long],
    note: Option[String],
    changesRows: Boolean) {

  /** The batch of a query that it writes. */
  def batchOf(queryId: String): Option[Long] = DeltaCommits.lastOf(queryId, batches)
}

/** The queries and batches that have written a Delta table, as its log tells them. */
private[changelog] object DeltaCommits {

  /** The commits from a version on that the log still has, the newest first; none if it is no Delta table. */
  def newestFirst(session: SparkSession, table: String, from: Long = 0): LazyList[DeltaCommit] =
    snapshotOf(session, table).fold(LazyList.empty[DeltaCommit]) { snapshot =>
      LazyList.iterate(snapshot.version)(_ - AtOnce).takeWhile(_ >= from).flatMap { last =>
        val entries = snapshot.log(math.max(from, last - AtOnce + 1), last)
        entries.reverse.map { entry =>
          val changesRows = entry.files.files.exists(_.changesData)
          DeltaCommit(entry.version, entry.batches, entry.note, changesRows)
        }
      }
    }

  /** The last version of a table. */
  def lastVersion(session: SparkSession, table: String): Option[Long] =
    snapshotOf(session, table).map(_.version)

  /** The last batch that a query has written, under whatever name of the table. */
  def lastBatch(session: SparkSession, table: String, queryId: String): Option[Long] =
    snapshotOf(session, table).flatMap(snapshot => lastOf(queryId, snapshot.batches))

  /** The application in the log for a query that writes a table by this name. */
  def application(queryId: String, table: String): String = s"$queryId/$table"

  /** The last batch of a query, under whatever name of the table. */
  private[delta] def lastOf(queryId: String, batches: Map[String, Long]): Option[Long] =
    batches.collect {
      case (name, batch) if name.startsWith(application(queryId, table = "")) => batch
    }.maxOption

  private def snapshotOf(session: SparkSession, table: String): Option[DeltaSnapshot] =
    try DeltaRelation.find(session, table).map(_.snapshot)
    catch { case _: AnalysisException => None }

  /** The number of commits that are read at once. */
  private val AtOnce = 50L
}
