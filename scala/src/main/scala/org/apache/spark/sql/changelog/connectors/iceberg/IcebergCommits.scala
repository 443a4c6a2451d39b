// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.iceberg

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.classic.SparkSession

/** The queries and batches that have written an Iceberg table, according to the summaries of its snapshots. */
private[changelog] object IcebergCommits {
  private val Query = "spark-changelog.query"
  private val Batch = "spark-changelog.batch"

  /** The prefix of settings for the summaries of a session's commits. */
  private val Summary = "spark.sql.iceberg.snapshot-property."

  /** Returns the notes of a batch among those of a snapshot. */
  def notesIn(summary: Map[String, String]): Map[String, String] =
    summary.filter { case (name, _) => name == Query || name == Batch }

  /** Returns the settings of statements that write a batch. */
  def ofBatch(queryId: String, batch: Long): Map[String, String] =
    Map(Summary + Query -> queryId, Summary + Batch -> batch.toString)

  /** Returns the last batch written by a query, unless the snapshot has expired. */
  def lastBatch(session: SparkSession, table: String, queryId: String): Option[Long] = {
    val found =
      try IcebergRelation.newest(session, table)
      catch {
        // The table does not exist yet, or is a path.
        case error: AnalysisException if error.getCondition != "CHANGELOG_ICEBERG_NOT_LINKED" =>
          None
      }
    found.flatMap(table => batches(table, queryId).nextOption().map(_._1))
  }

  /** Returns the batches written by a query, newest first, with the snapshot of each. */
  def batches(table: IcebergTable, queryId: String): Iterator[(Long, IcebergSnapshot)] =
    table.history.filter(_.summary.get(Query).contains(queryId)).map { snapshot =>
      snapshot.summary(Batch).toLong -> snapshot
    }
}
