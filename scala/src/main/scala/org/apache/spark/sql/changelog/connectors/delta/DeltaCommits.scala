// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.classic.SparkSession

/**
 * A commit of a Delta table.
 *
 * @param batches
 *   the batches written by the commit, by application
 * @param note
 *   the value of [[Delta.CommitNote]] at the commit
 * @param changesRows
 *   whether the commit changes the table's rows
 */
private[changelog] case class DeltaCommit(
    version: Long,
    batches: Map[String, Long],
    note: Option[String],
    changesRows: Boolean) {

  /** Returns the batch of a query written by the commit. */
  def batchOf(queryId: String): Option[Long] = DeltaCommits.lastOf(queryId, batches)
}

/** The queries and batches that have written a Delta table, according to the table's log. */
private[changelog] object DeltaCommits {

  /**
   * Returns the commits from a version on, newest first, as far as the log reaches. Returns no commits for other
   * tables.
   */
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

  /** Returns the last version of a table. */
  def lastVersion(session: SparkSession, table: String): Option[Long] =
    snapshotOf(session, table).map(_.version)

  /** Returns the number of rows added by the last commit, if the commit changes rows and its files have statistics. */
  def numRowsAdded(session: SparkSession, table: String): Option[Long] =
    snapshotOf(session, table).flatMap { snapshot =>
      val files = snapshot.log(snapshot.version, snapshot.version).flatMap(_.files.files)
      val rows =
        files.filter(file => file.changesData && !file.isGone && !file.isFeed).map(_.rows)
      Option.when(rows.nonEmpty && rows.forall(_.nonEmpty))(rows.flatten.sum)
    }

  /** Returns the last batch written by a query, under any name of the table. */
  def lastBatch(session: SparkSession, table: String, queryId: String): Option[Long] =
    snapshotOf(session, table).flatMap(snapshot => lastOf(queryId, snapshot.batches))

  /** Returns the log's application name for a query that writes a table of this name. */
  def application(queryId: String, table: String): String = s"$queryId/$table"

  /** Returns the last batch of a query, under any name of the table. */
  private[delta] def lastOf(queryId: String, batches: Map[String, Long]): Option[Long] =
    batches.collect {
      case (name, batch) if name.startsWith(application(queryId, table = "")) => batch
    }.maxOption

  private def snapshotOf(session: SparkSession, table: String): Option[DeltaSnapshot] = {
    val now = System.currentTimeMillis()
    try DeltaRelation.find(session, table).map(_.snapshotSince(Some(now)))
    catch { case _: AnalysisException => None }
  }

  /** The number of commits read at once. */
  private val AtOnce = 50L
}

/**
 * A file that a commit adds, removes, or writes for the change data feed.
 *
 * @param bytes
 *   the size without rows marked by a deletion vector, as far as statistics tell
 * @param rows
 *   None without statistics
 * @param partition
 *   the values of the partition columns, by the columns' names in files
 */
private[changelog] final case class DeltaFileChange(
    path: String,
    bytes: Long,
    rows: Option[Long],
    changesData: Boolean = true,
    isGone: Boolean = false,
    isFeed: Boolean = false,
    partition: Map[String, String] = Map.empty)

/**
 * The files of a commit.
 *
 * @param copied
 *   the number of unchanged rows in rewritten files, if the commit reports the number
 * @param replaced
 *   the number of deleted or updated rows in rewritten files
 */
private[changelog] final case class DeltaFileChanges(
    files: Seq[DeltaFileChange],
    copied: Long = 0,
    replaced: Long = 0)

/** The number of bytes to read for the changes of a commit. */
private[changelog] object DeltaCommitSize {

  def apply(commit: DeltaFileChanges): Long = {
    val feed = commit.files.filter(_.isFeed)
    if (feed.nonEmpty) feed.map(_.bytes).sum
    else {
      // A file removed and added again has a new deletion vector. Only the rows marked by the vector are read.
      val (vectors, whole) =
        commit.files.filter(_.changesData).groupBy(_.path).values.partition(_.size > 1)
      val marked = vectors.map(same => same.map(_.bytes).max - same.map(_.bytes).min).sum
      val (gone, come) = whole.flatten.toSeq.partition(_.isGone)
      marked + bytes(gone, commit.copied, commit.copied + commit.replaced) +
        bytes(come, commit.copied, come.flatMap(_.rows).sum)
    }
  }

  /** Returns the cost of files with `rows` rows, of which `copied` rows are unchanged. */
  private def bytes(files: Seq[DeltaFileChange], copied: Long, rows: Long): Long = {
    val share = if (copied == 0 || rows == 0) 0.0 else math.min(1.0, copied.toDouble / rows)
    math.round(files.map(_.bytes).sum * (1 - share * (1 - Cancelled)))
  }

  /** The cost of an unchanged row, which is read twice and cancels out, relative to a changed row. */
  private val Cancelled = 0.25
}
